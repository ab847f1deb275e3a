// lower_rotations: a pass over the steps for formats whose weights were rotated before packing.
#pragma once

#include <span>
#include <vector>

#include "libcore/model/steps.h"

namespace hf {

/// The same steps, with what their weights' formats ask of the activations made explicit. No format
/// of the table rotates or takes AWQ scales yet, so the list comes back as it is; a weight that
/// would need it stops the load. Errors  hf::Error naming the tensor and its format
std::vector<Step> lower_rotations(std::span<const Step> steps);

}  // namespace hf
