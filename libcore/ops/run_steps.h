// The step loop of the CPU: the host device and the CPU lane are this function.
#pragma once

#include <span>

#include "cpuexec/thread_pool.h"
#include "libcore/model/steps.h"
#include "libcore/model/tokens.h"
#include "libcore/ops/profile.h"

namespace hf {

/// Looks on while lanes run; called by the thread that runs a lane's steps.
class StepWatch {
  public:
    virtual ~StepWatch() = default;
    virtual void begins(std::span<const Step> steps, const Tokens& tokens) = 0;
    virtual void ends(std::span<const Step> steps, const Tokens& tokens) = 0;
};

/// Runs steps on all threads of the pool, which is entered once. Results are those of running them
/// one after another and do not depend on how the steps are cut or who does what.
///
/// tokens   arena and state in memory that the CPU can touch
/// timer    null, or told what each step took
void run_steps(std::span<const Step> steps, const Tokens& tokens, cpu::ThreadPool& pool,
               StepTimer* timer = nullptr);

/// Bytes of weights and state that the steps move: the lower bound of their time on any device.
uint64_t bytes_moved(std::span<const Step> steps, const Tokens& tokens);

}  // namespace hf
