// lower_rotations: a pass over the steps for formats whose weights were rotated before packing.
#pragma once

#include <span>
#include <vector>

#include "libcore/model/steps.h"

namespace hf {

/// The same steps, with what their weights' formats ask of the activations made explicit: one
/// `rotate` per distinct input, rotation and AWQ scale in front of the first product that needs it,
/// shared by all products until its input is written again. Architectures never hear of formats.
///
/// slots  grows by the slots that hold rotated activations
std::vector<Step> lower_rotations(std::span<const Step> steps, SlotTable& slots);

}  // namespace hf
