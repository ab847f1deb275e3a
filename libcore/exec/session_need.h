// What a session will allocate, known before anything is.
#pragma once

#include "libcore/exec/session.h"
#include "libcore/load/admission.h"
#include "libcore/load/fit.h"

namespace hf {

/// Exactly what the constructor of Session takes for a model of this plan.
/// Errors  as the constructor's, but for memory
SessionNeed session_need(const ModelPlan& plan, const SessionOptions& options);

/// What a model and its sessions take; exact for sessions of options.max_seq tokens, for others off
/// by the few bytes that align each layer's cache.
///
/// totals  the plan's, or those of a load: both give the same
ModelFootprint footprint(const WeightTotals& totals, const ModelPlan& plan, const DeviceInfo& info,
                         const SessionOptions& options);

/// The slab of a session.
/// Errors  hf::Error(usage) when max_seq exceeds the model's maximum
StateLayout lay_out_session_state(const ModelPlan& plan, const SessionOptions& options);

}  // namespace hf
