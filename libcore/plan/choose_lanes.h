// choose_lanes: the lane of every unit, so that activations cross as rarely as possible.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "libcore/plan/lane_units.h"

namespace hf {

/// What a plan costs; less is better, the first difference counts.
struct LaneCost {
    uint32_t crossings = 0;
    uint64_t bytes = 0;  // copied
    uint32_t segments = 0;
    uint32_t cpu_steps = 0;  // floating ones
    auto operator<=>(const LaneCost&) const = default;
};

struct LaneChoice {
    std::vector<Lane> lanes;  // by unit; of windows it says nothing
    LaneCost cost;
};

/// The cheapest choice, exactly.
///
/// tokens  in a pass: what a slot's bytes are reckoned with, one row of logits beside them
LaneChoice choose_lanes(std::span<const LaneUnit> units, uint32_t tokens);

}  // namespace hf
