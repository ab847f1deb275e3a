// Placement: where each weight of a plan lives and who multiplies it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/device/device.h"
#include "libcore/load/budget.h"

namespace hf {

struct ModelPlan;

/// Where layers land: an index of a device, and a residency, per layer.
struct Layout {
    uint32_t output_device = 0;  // embedding, final norm, head
    std::vector<uint32_t> layer_device;
    std::vector<Residency> layer_residency;  // of what spills of the layer

    uint32_t spilled() const;
};

/// Everything on device 0, the first `spilled` layers in host memory.
Layout lay_out_layers(uint32_t layers, uint32_t spilled);

/// Errors  hf::Error when an index names no device, or a list has another length than the layers
void check_layout(const Layout& layout, uint32_t layers, uint32_t devices);

/// Writes residency, exec, split_row and is_mirrored into every weight of the plan. Says nothing
/// about what fits or is allowed (fit.h, run/refuse.h); may be called again.
///
///   vectors, sidecars   device; mirrored where a CPU segment may read them
///   embedding           with the head when it is the head; else in the mapped file, a row per
///                       token, read by the host (a device that reads files in place keeps it)
///   head                device
///   matrices            of spilled layers as the budget says, else device
///
/// Who multiplies a spilled matrix: the CPU only where the format has a CPU function, the device
/// only where it has a kernel. Where both lack it, it is the device's, and run/refuse.h says no.
/// Errors  as check_layout
void place(ModelPlan& plan, const DeviceInfo& info, const Budget& budget, const Layout& layout);

/// Whether the CPU lane can multiply a format: it has a dot, or at least decode_row.
bool is_covered(const Codec& codec);

/// What the CPU lane finds in the spilled layers, from what the weights say.
struct Coverage {
    uint32_t spilled = 0, covered = 0;                // layers; covered: every matrix that left
    uint32_t uncovered_tensors = 0;                   // of spilled layers, multiplied by the device
    std::vector<std::string_view> uncovered_formats;  // by name
    std::vector<std::string_view> generic_formats;    // without a dot: decoded row by row
};
Coverage coverage(const ModelPlan& plan);

/// "cpu exec: 8/8 spilled layers fully covered; uncovered quants: none"
std::string coverage_line(const Coverage& coverage);

/// "  partial offload: 24 resident / 8 offloaded, i_gpu_start=8". Empty: nothing was asked for and
/// nothing left the device.
std::vector<std::string> split_lines(uint32_t layers, uint32_t spilled, const Budget& budget);

}  // namespace hf
