// Budget: how much of a model stays on the device, and the arithmetic that turns it into layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/model/weight.h"

namespace hf {

/// What a spilled layer leaves on the device: nothing but its vectors, or its mixer too.
enum class Spill : uint8_t { layers, ffn };
std::string_view name_of(Spill spill);

/// "pcie", "cpu", "split": who multiplies what is spilled.
std::string_view name_of(Exec exec);

/// What a person may say about where weights live. The defaults say nothing.
struct Budget {
    enum class Layers : uint8_t { unset, automatic, fixed };

    Layers layers = Layers::unset;
    uint32_t device_layers = 0;       // fixed: layers that stay on the device, from the end
    Spill spill = Spill::layers;      // what leaves it of the others
    Exec exec = Exec::device;         // who multiplies what left it
    double split_share = kAutoShare;  // exec split: the device's share of rows, 0 to 1
    bool pin = true;                  // false: what only the CPU reads is not pinned
    bool lock = false;                // keeps in memory what is read from the mapped file
    uint64_t split_least_bytes = kSplitLeastBytes;

    /// What `auto` means until somebody measures: a link of 27 GB/s beside 45 GB/s of the cores.
    static constexpr double kAutoShare = 0.375;
    /// Below this a split costs more than it saves, and the CPU multiplies alone.
    static constexpr uint64_t kSplitLeastBytes = 2 << 20;
};

/// Layers [0, n) leave the device.
///
/// device_layers  none: nothing leaves; more than there are: the same
constexpr uint32_t spilled_layers(uint32_t layers, std::optional<uint32_t> device_layers) {
    const uint32_t stay = device_layers.value_or(layers);
    return stay < layers ? layers - stay : 0;
}

/// Rows of a split matrix that are the device's: the share in steps of 8 rows, and at least 8 rows
/// for each side. 0: too few rows, or a share of 0; all of them: a share of 1.
uint64_t split_row(uint64_t rows, double share);

}  // namespace hf
