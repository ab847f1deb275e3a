#include "libcore/load/host_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "libcore/base/refusal.h"
#include "libcore/load/mapped_weights.h"
#include "libcore/load/model.h"

namespace hf {
namespace {

/// A device whose memory is the machine's: the host device, playing a card or not, and cards that
/// have none of their own.
bool is_in_host_memory(const DeviceInfo& info) {
    return info.kind == "host" || info.unified;
}

uint64_t available_or_refuse(const HostRam& ram) {
    if (ram.available) return *ram.available;
    throw Refusal(
        "how much host memory is available cannot be read (MemAvailable of /proc/meminfo)",
        "keep all layers on the device (memory.gpu_layer_budget), or set memory.offload_exec = cpu "
        "with memory.pin = false, and memory.oom_guard = off");
}

/// Ways out, as one hint. One more is to raise the limit, where somebody set it.
std::string hint_of(std::vector<std::string> ways, const HostRam& ram) {
    if (ram.is_set) ways.push_back(fmt::format("raise the limit ({})", ram.limited_by));
    std::erase(ways, "");
    return fmt::format("{}", fmt::join(ways, ", or "));
}

/// The headroom under which so many pinned bytes would do; empty: none is small enough.
std::string less_headroom(uint64_t pinned, uint64_t available) {
    if (available < pinned) return "";
    return fmt::format("set memory.host_headroom_mb = {}", (available - pinned) >> 20);
}

}  // namespace

Residency cpu_lane_residency(const DeviceInfo& info, bool pin) {
    return pin && info.can_map_host ? Residency::host_mapped : Residency::host_plain;
}

HostNeed host_need(const WeightTotals& totals, const ModelPlan& plan, const DeviceInfo& info,
                   const SessionNeed& session) {
    constexpr size_t kPinned = size_t(Residency::host_mapped);
    HostNeed need;
    if (!info.in_place) {
        need.pinned_weights = totals.bytes[kPinned];
        need.pads = totals.tensors[kPinned] * kHostSlack;
    }
    const bool pins_lane =
        cpu_lane_residency(info, plan.budget.pin) == Residency::host_mapped && session.host_bytes;
    if (pins_lane) need.pads += kHostSlack;
    (pins_lane ? need.pinned_lane : need.plain) += session.host_bytes;
    need.plain += totals.mirrored_bytes;
    if (plan.budget.lock) need.locked = total_bytes(mapped_pages(plan, info));
    if (is_in_host_memory(info))
        need.device = device_copy_bytes(totals, plan, info.in_place) + session.device_bytes;
    return need;
}

bool is_guarded(std::string_view oom_guard, const DeviceInfo& info, const HostRam& ram) {
    if (oom_guard == "auto") return is_in_host_memory(info) && ram.available && !ram.has_swap;
    return oom_guard == "on";
}

void check_host_fits(const HostNeed& need, const HostRam& ram, uint64_t headroom, bool is_guarded,
                     const std::function<std::string()>& more_stays) {
    check_lockable(need.locked, ram.lockable);
    if (need.locked > 0) {
        const uint64_t available = available_or_refuse(ram);
        const uint64_t wanted = need.pinned() + need.locked + headroom;
        if (available < wanted)
            throw Refusal(
                fmt::format("{} bytes of host memory would be locked ({} of mapped weights, {} "
                            "pinned beside them) and {} must stay free, but {} are available "
                            "({}): {} are missing",
                            need.locked + need.pinned(), need.locked, need.pinned(), headroom,
                            available, ram.limited_by, wanted - available),
                hint_of({"set memory.lock = false",
                         less_headroom(need.pinned() + need.locked, available)},
                        ram));
    } else if (need.pinned_weights > 0) {
        const uint64_t available = available_or_refuse(ram);
        const uint64_t wanted = need.pinned() + headroom;
        if (available < wanted)
            throw Refusal(
                fmt::format("{} bytes of host memory would be pinned ({} of weights, {} of padding "
                            "behind them, {} of activations) and {} must stay free, but {} are "
                            "available ({}): {} are missing",
                            need.pinned(), need.pinned_weights, need.pads, need.pinned_lane,
                            headroom, available, ram.limited_by, wanted - available),
                hint_of({more_stays(), "set memory.offload_exec = cpu with memory.pin = false",
                         less_headroom(need.pinned(), available)},
                        ram));
    }
    if (!is_guarded) return;
    const uint64_t available = available_or_refuse(ram);
    if (available < need.all())
        throw Refusal(
            fmt::format("{} bytes of host memory are needed ({} pinned, {} locked, {} plain, {} "
                        "for the device), but {} are available ({}): {} are missing",
                        need.all(), need.pinned(), need.locked, need.plain, need.device, available,
                        ram.limited_by, need.all() - available),
            hint_of({"lower memory.max_seq", "use a smaller model", "set memory.oom_guard = off"},
                    ram));
}

}  // namespace hf
