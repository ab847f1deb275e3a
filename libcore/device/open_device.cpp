#include "libcore/device/open_device.h"

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/device/host_device.h"

namespace hf {
namespace {

struct DeviceRow {
    std::string_view kind;
    /// Null when there is no such device on this machine or in this build.
    std::unique_ptr<Device> (*open)(const DeviceOptions& options);
};

std::unique_ptr<Device> open_host(const DeviceOptions& options) {
    return std::make_unique<HostDevice>(options);
}

std::unique_ptr<Device> open_hip(const DeviceOptions&) {
    return nullptr;
}

/// In the order in which "auto" tries them.
constexpr DeviceRow kDevices[] = {
    {"hip", open_hip},
    {"host", open_host},
};

}  // namespace

std::unique_ptr<Device> open_device(std::string_view kind, const DeviceOptions& options) {
    if (options.vram_bytes && kind == "auto") kind = "host";
    if (options.vram_bytes && kind != "host")
        throw Error(fmt::format("device.vram_mb pretends a card on the processor, but device.kind "
                                "is {}; use host or auto",
                                kind),
                    Fault::usage);
    for (const DeviceRow& row : kDevices)
        if (kind == "auto" || kind == row.kind)
            if (auto device = row.open(options)) return device;
    throw Error(fmt::format("device.kind = {}: this build has no such device; "
                            "use host or auto to run on the CPU",
                            kind),
                Fault::no_device);
}

}  // namespace hf
