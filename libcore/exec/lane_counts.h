// LaneCounts: what two lanes have done.
#pragma once

#include <cstdint>

namespace hf {

/// A product counts once per pass, whatever the number of its tokens.
struct LaneCounts {
    uint64_t crossings = 0;
    uint64_t bytes_up = 0, bytes_down = 0;
    /// Products that the CPU computed, all rows or some.
    uint64_t cpu_products = 0;
    /// Products of host memory that the device read over the link because their exec says so: with
    /// pcie all that are spilled; with cpu and split those of formats that the CPU does not know.
    /// In prompts the device also reads others' (side_of); those are not counted.
    uint64_t link_products = 0;
};

/// What crossed at the border in front of a segment.
struct Crossing {
    uint64_t bytes_up = 0, bytes_down = 0;
    double wait_seconds = 0;  // for what the device had yet to do
    double up_seconds = 0, down_seconds = 0;
};

}  // namespace hf
