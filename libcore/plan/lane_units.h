// LaneUnit: the steps that a plan moves as one, with what they read and write on each lane.
#pragma once

#include <span>
#include <vector>

#include "libcore/plan/segments.h"

namespace hf {

/// One step, or the products of a window.
struct LaneUnit {
    /// What a lane does. A window is on both lanes at once; any other unit is its one step, on each
    /// lane that may run it.
    std::vector<Step> steps[kLanes];
    bool is_window = false;
    bool is_floating = false;

    std::vector<SlotCopy> reads[kLanes];  // what must be there before the lane runs it
    std::vector<Slot> writes[kLanes];     // what is there, and only there, afterwards
    std::vector<SlotCopy> cut_outputs;    // of a window: the CPU's columns, which go up behind it

    bool may_run(Lane lane) const { return !is_window && !steps[size_t(lane)].empty(); }
};

std::vector<LaneUnit> lane_units(std::span<const Step> steps, TokenClass token_class);

}  // namespace hf
