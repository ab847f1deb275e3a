#include "libcore/load/fit.h"

#include <algorithm>

#include "libcore/load/model.h"

namespace hf {

constexpr uint64_t kMostSlack = 256 << 20;

uint64_t device_slack(uint64_t total_bytes) {
    return std::min(total_bytes / 64, kMostSlack);
}

/// 63 of 64 bytes are left, until the slack stops to grow.
uint64_t least_device_memory(uint64_t bytes) {
    return bytes == 0 ? 0 : bytes + std::min((bytes - 1) / 63, kMostSlack);
}

DeviceNeed device_need(const ModelPlan& plan, const DeviceInfo& info, const MemoryInfo& memory,
                       const SessionNeed& session) {
    return {.weights = device_copy_bytes(planned_totals(plan), plan, info.in_place),
            .session = session.device_bytes,
            .slack = device_slack(memory.total),
            .available = memory.free};
}

DeviceNeed place_within(ModelPlan& plan, const DeviceInfo& info, const MemoryInfo& memory,
                        const Budget& budget, const SessionNeed& session) {
    const uint32_t layers = plan.config.n_layers;
    const bool is_fixed = budget.layers == Budget::Layers::fixed;
    uint32_t spilled = is_fixed ? spilled_layers(layers, budget.device_layers) : 0;
    for (;; ++spilled) {
        place(plan, info, budget, lay_out_layers(layers, spilled));
        const DeviceNeed need = device_need(plan, info, memory, session);
        if (is_fixed || info.in_place || info.unified || need.fits() || spilled == layers)
            return need;
    }
}

}  // namespace hf
