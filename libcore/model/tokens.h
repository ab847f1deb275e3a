// Tokens: one pass over the steps, as a lane sees it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libcore/codec/codec.h"
#include "libcore/model/lane.h"
#include "libcore/model/slots.h"
#include "libcore/model/state.h"

namespace hf {

class StepWatch;

/// The tokens of one pass and the memory that it works on. `ids` and `logit_rows` are host memory;
/// arena and state are in the memory of the lane that runs.
struct Tokens {
    uint32_t count = 0;                    // tokens in this pass
    uint32_t logit_count = 0;              // how many of them want logits
    uint32_t pos = 0;                      // absolute position of the first one
    uint32_t commits = 0;                  // rows of the pass before that become state in this one
    const int32_t* ids = nullptr;          // (count), each below the vocabulary
    const uint32_t* logit_rows = nullptr;  // (logit_count), each below count, ascending

    float* arena = nullptr;
    const ArenaLayout* arena_layout = nullptr;
    std::byte* state = nullptr;
    const StateLayout* state_layout = nullptr;

    Lane lane = Lane::device;  // these are set by whoever runs the steps
    cpu::Level level = cpu::Level::scalar;
    StepWatch* watch = nullptr;  // told when a lane begins and ends; for tests and traces

    uint32_t rows(Slot slot) const { return slot.rows == Rows::tokens ? count : logit_count; }
    /// Row t of a slot.
    float* row(Slot slot, size_t t) const {
        return arena + arena_layout->offset[slot.id] + t * slot.width;
    }
    template <class T = float>
    T* at(uint64_t state_offset) const {
        return reinterpret_cast<T*>(state + state_offset);
    }
};

}  // namespace hf
