// Activation tags: whether every product reads what its weight's format expects.
#pragma once

#include "libcore/plan/segments.h"

namespace hf {

/// Follows what happens to each slot on each lane, copies included: divided by which AWQ scale and
/// rotated how, once or not at all; made integers in which layout; and whether what it was made of
/// has been written since. What other steps write is an activation as it is. Whatever executes the
/// plan does just this, on either lane, so a plan that fits has each rotation exactly once in front
/// of each product.
///
/// Returns  the first step whose input is not what it expects: a product whose weight wants another
///          rotation, scale or layout, or a rotation or preparation of what had one before; null:
///          none
const Step* find_unfit_step(const SegmentPlan& plan);

}  // namespace hf
