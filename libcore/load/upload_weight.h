// upload_weight: the only function that brings weights to a device.
#pragma once

#include <span>

#include "libcore/load/model.h"

namespace hf {

/// Fills the buffers of a weight, where its residency says. A matrix is read in place from the
/// mapped file where the device can, else copied; vectors and sidecars become float32, are on the
/// device always, and are mirrored where the weight says so.
///
/// values  a vector's, in their effective form; ignored for a matrix
/// stats   grows by what was taken
/// Errors  hf::Error when memory runs out; what was allocated is given back with the weight
void upload_weight(Device& device, LoadStats& stats, const PlannedWeight& planned,
                   std::span<const float> values);

}  // namespace hf
