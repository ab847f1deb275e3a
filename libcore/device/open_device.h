// Opens a device by name.
#pragma once

#include <memory>
#include <string_view>

#include "libcore/device/device.h"
#include "libcore/ops/profile.h"

namespace hf {

struct DeviceOptions {
    unsigned threads = 0;                   // host device: 0 = the cores that are allowed
    cpu::Level level = cpu::Level::scalar;  // highest instruction level to use
    cpu::Activations activations = cpu::Activations::f32;
    StepProfile* profile = nullptr;  // host device: where its steps' times are added, or null
};

/// kind  "auto", "host", "hip"; auto takes the first that is there
/// Errors  hf::Error(Fault::no_device) when that kind is not there, saying why
std::unique_ptr<Device> open_device(std::string_view kind, const DeviceOptions& options);

}  // namespace hf
