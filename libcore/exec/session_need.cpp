#include "libcore/exec/session_need.h"

#include <fmt/format.h>

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/load/host_fit.h"

namespace hf {

StateLayout lay_out_session_state(const ModelPlan& plan, const SessionOptions& options) {
    if (options.max_seq < 1 || options.max_seq > plan.config.max_positions)
        throw Error(fmt::format("memory.max_seq = {}: {} takes 1 to {} tokens", options.max_seq,
                                plan.file->path, plan.config.max_positions),
                    Fault::usage);
    return lay_out_state(plan.state, *options.kv, options.max_seq,
                         std::min(options.max_seq, Session::kMaxTokens));
}

SessionNeed session_need(const ModelPlan& plan, const SessionOptions& options) {
    const StateLayout state = lay_out_session_state(plan, options);
    const ArenaLayout layout = lay_out_arena(plan.slots, state.max_pending, options.max_logits);
    const uint64_t arena = layout.floats * sizeof(float);
    const bool has_cpu_lane = std::ranges::any_of(
        plan.weights, [](const PlannedWeight& w) { return w.weight->exec != Exec::device; });
    return {.device_bytes = state.bytes + arena, .host_bytes = has_cpu_lane ? arena : 0};
}

ModelFootprint footprint(const WeightTotals& totals, const ModelPlan& plan, const DeviceInfo& info,
                         const SessionOptions& options) {
    const StateLayout state = lay_out_session_state(plan, options);
    const SessionNeed session = session_need(plan, options);
    const uint64_t per_token = 2ull * plan.state.kv_layers * state.kv_row_bytes;
    return {.weight_bytes = device_copy_bytes(totals, plan, info.in_place),
            .session_bytes = session.device_bytes - per_token * options.max_seq,
            .kv_bytes_per_token = per_token,
            .pinned_bytes = host_need(totals, plan, info, session).pinned()};
}

}  // namespace hf
