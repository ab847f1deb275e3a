// What a session will allocate, known before anything is.
#pragma once

#include "libcore/exec/session.h"
#include "libcore/load/fit.h"

namespace hf {

/// Exactly what the constructor of Session takes for a model of this plan.
/// Errors  as the constructor's, but for memory
SessionNeed session_need(const ModelPlan& plan, const SessionOptions& options);

/// The slab of a session.
/// Errors  hf::Error(usage) when max_seq exceeds the model's maximum
StateLayout lay_out_session_state(const ModelPlan& plan, const SessionOptions& options);

}  // namespace hf
