// lower_activations: a pass over the steps for products with integer activations.
#pragma once

#include <span>
#include <vector>

#include "cpuexec/codec_ops.h"
#include "libcore/model/steps.h"

namespace hf {

/// The same steps, with the preparation of activations made explicit: one `prepare` per distinct
/// input and Prepare, shared by all products until the input is written again. All of an input come
/// in front of the first product that reads it. Each product's OpParams::activations says what it
/// multiplies with: `wanted`, or f32 where the weight's format has no dots for that. Runs after
/// lower_rotations.
///
/// slots  grows by the slots that hold prepared activations
std::vector<Step> lower_activations(std::span<const Step> steps, cpu::Activations wanted,
                                    SlotTable& slots);

}  // namespace hf
