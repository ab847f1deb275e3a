// Fit: whether a placed plan fits the device, and how many layers do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/load/placement.h"

namespace hf {

/// What a session will allocate beside the weights (exec/session_need.h).
struct SessionNeed {
    uint64_t device_bytes = 0;  // state, activations
    uint64_t host_bytes = 0;    // activations and staging of the CPU lane
};

/// Bytes that must fit the device at once.
struct DeviceNeed {
    uint64_t weights = 0;    // that are copied there
    uint64_t session = 0;    // state and activations
    uint64_t slack = 0;      // what the driver takes for itself: 1/64 of all, at most 256 MiB
    uint64_t available = 0;  // as the device reports

    uint64_t needed() const { return weights + session + slack; }
    /// Exactly full fits.
    bool fits() const { return needed() <= available; }
    uint64_t missing() const { return fits() ? 0 : needed() - available; }
};

uint64_t device_slack(uint64_t total_bytes);
/// The least memory that holds so many bytes beside its own slack.
uint64_t least_device_memory(uint64_t bytes);

DeviceNeed device_need(const ModelPlan& plan, const DeviceInfo& info, const MemoryInfo& memory,
                       const SessionNeed& session);

/// Places the plan as the budget says. A number of layers is a pin, whether it fits or not. Unset
/// and automatic keep as many layers as fit; everything stays where a device reads files in place,
/// or has no memory of its own, so that spilling frees nothing;
/// when not even spilling all of them helps, all are spilled.
/// Returns what it needs; fits() may be false
DeviceNeed place_within(ModelPlan& plan, const DeviceInfo& info, const MemoryInfo& memory,
                        const Budget& budget, const SessionNeed& session);

}  // namespace hf
