// The device that a tool computes on: from settings, and into what it prints beside its numbers.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "libcore/config/config.h"
#include "libcore/device/open_device.h"
#include "libcore/run/product_kinds.h"

namespace hf {

/// Threads that compute: as many as were asked for, else as many as the machine is good for.
unsigned thread_count(const CpuConfig& config);

/// Errors  hf::Error(usage) for an instruction level that this CPU lacks
DeviceOptions device_options(const Config& config);

/// "CPU NAME, 2 threads, i16/avx2": the last is what the products of the plan are computed with.
std::string device_text(const DeviceInfo& info, const std::vector<ProductKind>& products);

/// Described in docs/hf-run.md.
nlohmann::ordered_json device_json(const DeviceInfo& info,
                                   const std::vector<ProductKind>& products);

/// One line of valid JSON in UTF-8, whatever the strings in it hold.
std::string json_line(const nlohmann::ordered_json& object);

}  // namespace hf
