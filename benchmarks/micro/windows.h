// Measuring arms in turns: windows, what disturbs them, and what is said of them in the end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "benchmarks/micro/arms.h"

namespace hf::bench {

/// Some dispatches of one arm, one after another.
struct Window {
    double gb_per_s = 0;  // over the dispatches that nobody disturbed; NaN: too few were
    uint32_t kept = 0, dropped = 0;
};

/// What one dispatch took.
struct Dispatch {
    double seconds;
    bool is_disturbed;  // the system took a thread's core away meanwhile
};

/// Disturbed dispatches are dropped; when they are more than half, the window is worth nothing.
Window window_of(std::span<const Dispatch> dispatches, uint64_t bytes);

/// The windows of all arms, [arm][round]. Arms take turns, so that what changes on the machine
/// changes for all of them; the matrices go on where the arm before stopped. There are as many
/// rounds as it takes until each arm has `wanted` windows that are worth something, but at most
/// three times as many.
std::vector<std::vector<Window>> measure_in_turns(std::span<const Arm> arms, size_t wanted,
                                                  size_t dispatches);

/// NaNs are left out; all zero when nothing is left.
struct Spread {
    double median = 0, lowest = 0, highest = 0;
    size_t count = 0;
};
Spread spread_of(std::vector<double> values);

Spread speed_of(std::span<const Window> windows);

/// An arm's speed as a share of another's in the same round.
Spread ratio_of(std::span<const Window> windows, std::span<const Window> to);

}  // namespace hf::bench
