// Lanes: the two sides that run steps.
#pragma once

#include <cstdint>

namespace hf {

/// The CPU beside a device, or the device. On a machine without a card the host device is the
/// device, and the CPU lane has nothing to do unless weights were spilled.
enum class Lane : uint8_t { cpu, device };
inline constexpr uint32_t kLanes = 2;

}  // namespace hf
