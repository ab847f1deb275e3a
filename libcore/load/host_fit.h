// HostNeed: what a placed plan takes of the machine's own memory, and whether it may.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "libcore/device/host_ram.h"
#include "libcore/load/fit.h"
#include "libcore/load/totals.h"

namespace hf {

/// Bytes of host memory. What is read where the file is mapped is none of it, unless it is locked.
struct HostNeed {
    uint64_t pinned_weights = 0;
    uint64_t locked = 0;       // pages of the mapped file that are locked there
    uint64_t pads = 0;         // kHostSlack behind each pinned buffer
    uint64_t pinned_lane = 0;  // activations of the CPU lane
    uint64_t plain = 0;        // mirrors, and activations of the CPU lane that are not pinned
    uint64_t device = 0;       // the device's bytes, where its memory is the host's

    uint64_t pinned() const { return pinned_weights + pads + pinned_lane; }
    uint64_t all() const { return pinned() + locked + plain + device; }
    bool operator==(const HostNeed&) const = default;
};

/// Where the CPU lane keeps its activations: pinned, unless nothing may be or the device cannot.
Residency cpu_lane_residency(const DeviceInfo& info, bool pin);

/// `totals` are the plan's, or those of a load: both give the same.
HostNeed host_need(const WeightTotals& totals, const ModelPlan& plan, const DeviceInfo& info,
                   const SessionNeed& session);

/// Whether memory.oom_guard = "auto", "on" or "off" is in force. By itself it is where weights and
/// state lie in host memory, unless there is swap; and where what is available can be known.
bool is_guarded(std::string_view oom_guard, const DeviceInfo& info, const HostRam& ram);

/// Refuses before the first byte: pinned and locked memory cannot be reclaimed, so it must leave
/// `headroom` bytes free (none is asked for when no weights are pinned or locked). With the guard,
/// everything that is needed must be available. What is locked must be allowed, too.
///
/// more_stays  how more layers would stay on the device, for a hint ("set KEY = VALUE"); an empty
///             text: they would not
/// Errors  Refusal with needed, available, missing and the keys to change
void check_host_fits(const HostNeed& need, const HostRam& ram, uint64_t headroom, bool is_guarded,
                     const std::function<std::string()>& more_stays);

}  // namespace hf
