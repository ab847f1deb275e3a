// The step loop of the CPU: the host device and the CPU lane are this function.
#pragma once

#include <span>

#include "cpuexec/thread_pool.h"
#include "libcore/model/steps.h"
#include "libcore/model/tokens.h"

namespace hf {

/// Runs steps in order on all threads of the pool. The pool is entered once; between two steps
/// there is a barrier. A step is cut into pieces that threads take one by one, so a late thread
/// costs one piece; results do not depend on the cut.
///
/// tokens  arena and state in memory that the CPU can touch
void run_steps(std::span<const Step> steps, const Tokens& tokens, cpu::ThreadPool& pool);

/// False for a step that has no rows in this pass (the head, when no logits are wanted).
bool has_rows(const Step& step, const Tokens& tokens);

/// Bytes of weights and state that the steps move: the lower bound of their time on any device.
uint64_t bytes_moved(std::span<const Step> steps, const Tokens& tokens);

}  // namespace hf
