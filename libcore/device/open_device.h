// Opens a device by name.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "libcore/device/device.h"
#include "libcore/ops/profile.h"

namespace hf {

/// What a pretended card does wrong, for tests. Calls are counted from 1; 0: never.
struct MemoryFaults {
    uint32_t fail_allocation = 0, fail_upload = 0;  // that call throws
    uint32_t skew_allocation = 0;                   // that one is counted with a byte too much
    uint64_t free_lie = 0;                          // added to the bytes reported as free
};

struct DeviceOptions {
    unsigned threads = 0;                   // host device: 0 = the cores that are allowed
    cpu::Level level = cpu::Level::scalar;  // highest instruction level to use
    cpu::Activations activations = cpu::Activations::f32;
    StepProfile* profile = nullptr;  // host device: where its steps' times are added, or null

    // The host device as a card that is not there: with vram_bytes its memory ends exactly there
    // and weights are copied; without, it is the processor that it is and reads mapped files.
    std::optional<uint64_t> vram_bytes = {};
    bool unified = false, can_map_host = true;
    MemoryFaults faults = {};
};

/// kind  "auto", "host", "hip"; auto takes the first that is there, with vram_bytes host
/// Errors  hf::Error(Fault::no_device) when that kind is not there, saying why
///         hf::Error(Fault::usage) for vram_bytes of another device than host
std::unique_ptr<Device> open_device(std::string_view kind, const DeviceOptions& options);

}  // namespace hf
