// AWQ scales: columns of weights that meet large activations are enlarged before they are rounded,
// and the activations divided by the same when they are multiplied.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/base/progress.h"
#include "libcore/device/open_device.h"
#include "libcore/file/model_file.h"

namespace hf {

/// Of each matrix of the layers, by its name in the file: sum of x[k]^2 over all activations x that
/// it was multiplied with, (cols).
using SquareSums = std::map<std::string, std::vector<double>>;

/// Runs a model on a text and sums. Longer texts are run in windows of 2048 tokens, or fewer where
/// the model has no more.
///
/// ids          the calibration text
/// on_progress  called after each piece with tokens done and tokens in all
/// Returns      nothing when `interrupt` became true
/// Errors       hf::Error: what load_model() refuses, no ids, ids outside the vocabulary; a source
///              whose weights are rotated already
std::optional<SquareSums> sum_squares(std::shared_ptr<const ModelFile> file,
                                      std::span<const int32_t> ids, const DeviceOptions& options,
                                      const Log& log, const Progress& on_progress,
                                      const std::atomic<bool>& interrupt);

/// The scale of each column: the square root of its activations' root of the mean square, with a
/// geometric mean of 1 over all columns, within [0.01, 100]. Exactly values of f16, so that
/// weights are multiplied with what activations will be divided by.
///
/// Order   float64
/// Source  arXiv 2306.00978, section 3.2, with the exponent 1/2 in place of a search
std::vector<float> awq_scales(std::span<const double> sums);

}  // namespace hf
