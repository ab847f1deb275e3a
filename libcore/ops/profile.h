// StepProfile: where the time of forward passes goes, op by op.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libcore/base/shape.h"
#include "libcore/codec/codec.h"
#include "libcore/model/steps.h"
#include "libcore/model/tokens.h"

namespace hf {

/// Is told what steps took, by the thread that runs a lane's list.
class StepTimer {
  public:
    virtual ~StepTimer() = default;
    /// seconds         from begin to end
    /// thread_seconds  that threads were at it
    virtual void add(const Step& step, const Tokens& tokens, double seconds,
                     double thread_seconds) = 0;
};

/// All steps of one op on one lane, in passes of one token or in passes of several; matrix products
/// also by shape and format.
struct StepTimes {
    Op op;
    Lane lane;
    bool several_tokens;
    const Codec* codec;  // of a matrix, else null
    Shape shape;         // of a matrix, else zero

    uint64_t calls = 0;
    uint64_t bytes = 0;         // of weights and state, as in the table of ops
    double seconds = 0;         // from begin to end
    double thread_seconds = 0;  // that threads were at it: at most seconds * threads
};

/// A lane's times. Two lanes that run at once need one each.
struct StepProfile : StepTimer {
    std::vector<StepTimes> rows;  // in the order in which they were first met

    void add(const Step& step, const Tokens& tokens, double seconds,
             double thread_seconds) override;
};

}  // namespace hf
