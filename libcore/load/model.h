// Model: loaded weights and the steps that use them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libcore/arch/arch.h"
#include "libcore/base/log.h"
#include "libcore/device/device.h"
#include "libcore/file/model_file.h"
#include "libcore/model/steps.h"

namespace hf {

/// What loading took, by residency. Filled by upload_weight, the only function that uploads.
struct LoadStats {
    uint64_t bytes[kResidencies] = {};
    uint32_t tensors[kResidencies] = {};
    uint64_t in_place_bytes = 0;  // of these: read from the mapped file, no copy made
};

/// A model ready to run. Owns its weights; keeps the file mapped as long as weights view it.
/// Must not outlive its device.
struct Model {
    const Architecture* arch = nullptr;
    ModelConfig config;
    std::shared_ptr<const ModelFile> file;
    std::vector<std::unique_ptr<Weight>> weights;
    SlotTable slots;
    StepList steps;  // one pass, from token ids to logits
    Slot normed;     // (logits, dim): the final-normed vector that the head reads
    StateSpec state;
    Slot logits;  // (logits, vocab)
    Slot taps;    // (tokens, tap_layers * dim), when taps were asked for
    LoadStats stats;
};

struct LoadOptions {
    /// Layers whose output, the residual stream behind them, is copied to Model::taps in this
    /// order; kTapEmbedding is the stream before the first layer.
    std::vector<uint32_t> tap_layers;
    static constexpr uint32_t kTapEmbedding = Step::kNoLayer;
};

/// Loads a model: finds its architecture, checks every tensor, then uploads. Nothing is allocated
/// on the device before all checks passed; when an upload fails, everything is given back. Errors
/// hf::Error naming file, tensor or key, the value found and the value needed
Model load_model(std::shared_ptr<const ModelFile> file, Device& device, const LoadOptions& options,
                 const Log& log);

}  // namespace hf
