// TensorPlan: which tensor of a file plays which role, found and checked before anything is loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "libcore/arch/arch.h"
#include "libcore/file/model_file.h"

namespace hf {

/// A tensor and its role. Points into the file and the architecture's table.
struct PlannedTensor {
    const TensorRow* row;
    const TensorView* tensor;
    uint32_t layer;                         // Step::kNoLayer for those of the model itself
    Shape shape;                            // as the config says; the tensor was checked against it
    const TensorView* awq_scale = nullptr;  // (cols), beside a matrix whose format takes it
    const TensorView* levels = nullptr;     // (16), beside one whose format needs them
};

/// Finds every tensor that the architecture's table names, in the order of the table, layer by
/// layer. A head that is missing means tied embeddings; anything else missing is an error.
/// Errors  hf::Error naming file and tensor, and both shapes or formats: a tensor is missing, has
///         another shape, a type without a codec, a row that is no multiple of its group; or the
///         file holds a tensor that the architecture does not know
std::vector<PlannedTensor> plan_tensors(const ModelFile& file, const Architecture& arch,
                                        const ModelConfig& config);

}  // namespace hf
