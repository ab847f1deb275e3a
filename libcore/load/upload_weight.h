// upload_weight: the only function that brings weights to a device.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "libcore/load/model.h"

namespace hf {

/// Makes a weight of a matrix's packed bytes: read in place where the device can, else copied.
///
/// bytes   tensor_bytes(codec, shape), mapped as long as the weight lives
/// stats   grows by what was taken
/// Errors  hf::Error when memory runs out
std::unique_ptr<Weight> upload_weight(Device& device, LoadStats& stats, std::string name,
                                      const Codec& codec, Shape shape,
                                      std::span<const std::byte> bytes);

/// The same for float32 values that were made at load; always copied.
std::unique_ptr<Weight> upload_vector(Device& device, LoadStats& stats, std::string name,
                                      Shape shape, std::span<const float> values);

}  // namespace hf
