// A plan of segments as lines for people.
#pragma once

#include <string>

#include "libcore/plan/segments.h"

namespace hf {

/// One line per pass, per segment with the bytes that cross in front of it, and per step: its op,
/// weight, slots, and the rows of a product that is cut.
///
/// slots           of the model whose steps these are
/// tokens, logits  rows of the pass, for the bytes
std::string steps_text(const SegmentPlan& plan, const SlotTable& slots, uint64_t tokens,
                       uint64_t logits);

}  // namespace hf
