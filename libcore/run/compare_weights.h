// How far a model's weights are from those of the model that it was made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpuexec/thread_pool.h"
#include "libcore/base/progress.h"
#include "libcore/file/model_file.h"

namespace hf {

/// All matrices of the model that are in one format, against the same matrices of the original.
struct FormatError {
    const Codec* codec = nullptr;
    uint32_t tensors = 0;
    uint64_t weights = 0;
    double error2 = 0, original2 = 0;  // sums of (w - original)^2 and of original^2, in float64
    std::string worst;                 // the tensor with the largest relative error
    double worst_error = 0;

    double relative_error() const;  // sqrt(error2 / original2)
};

/// Compares matrices in their own basis: decoded, rotated back, without their AWQ scales. Vectors
/// are left out. Formats come in the order of the first tensor that has them.
///
/// on_progress  called after each tensor with the tensors done and in all; may be empty
/// Order        sums within a row from left to right, then over rows: any number of threads gives
///              the same bits
/// Errors       hf::Error: the two are not of one architecture and shape, follow different
///              conventions (Values), or are no whole models (see plan_tensors)
std::vector<FormatError> compare_weights(const ModelFile& model, const ModelFile& original,
                                         cpu::ThreadPool& pool, const Progress& on_progress);

}  // namespace hf
