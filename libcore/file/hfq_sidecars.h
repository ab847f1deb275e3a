// Tensors of an HFQ file that belong to a weight of the file.
//
//   of W.weight            format  values                 where the format of W
//   W.awq_scale.weight     F16     one per column of W    takes AWQ scales; finite and above 0
//   W.lloyd_levels.weight  F32     16                     needs them; finite
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "libcore/file/model_file.h"

namespace hf {

/// A tensor and the number of its format in the index.
struct HfqTensor {
    TensorView view;
    uint8_t format;
};

/// Reads the sidecars' values, and nothing of other tensors.
/// tensors  sorted by name
/// Errors   hf::Error: a sidecar without its weight, of a weight that takes none, of another format
///          or shape, with other values; a weight without the sidecar that it needs
void check_hfq_sidecars(const std::string& path, std::span<const HfqTensor> tensors);

}  // namespace hf
