// Model: weights and the steps that use them; first planned, then loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libcore/arch/arch.h"
#include "libcore/base/log.h"
#include "libcore/base/progress.h"
#include "libcore/device/device.h"
#include "libcore/device/host_pages.h"
#include "libcore/file/model_file.h"
#include "libcore/load/placement.h"
#include "libcore/load/tensor_plan.h"
#include "libcore/load/totals.h"
#include "libcore/model/steps.h"

namespace hf {

/// A weight and the tensor that it comes from.
struct PlannedWeight {
    std::unique_ptr<Weight> weight;  // steps point at it
    PlannedTensor source;            // rope_freqs: no tensor, the values are made
};

/// Everything about a model that can be known from headers: nothing is read, copied or allocated
/// on a device. The weights have no bytes yet, but steps, slots and sizes are final; place() writes
/// residency and exec into them before the load.
struct ModelPlan {
    const Architecture* arch = nullptr;
    ModelConfig config;
    std::shared_ptr<const ModelFile> file;
    std::vector<PlannedWeight> weights;  // in the order in which they are loaded
    SlotTable slots;
    std::vector<Step> steps;  // one pass, from token ids to logits, after all passes over the list
    Slot normed;              // (logits, dim): the final-normed vector that the head reads
    Slot logits;              // (logits, vocab)
    Slot taps;                // (tokens, tap_layers * dim), when taps were asked for
    StateSpec state;
    Budget budget;  // as it was placed; a plan that was not is all on the device
    Layout layout;
};

/// A model ready to run. Owns its weights; keeps the file mapped as long as weights view it.
/// Must not outlive its device.
struct Model : ModelPlan {
    LoadStats stats;
    PageLock lock;  // of what is read in the mapped file, where the budget says so
};

struct LoadOptions {
    /// Layers whose output, the residual stream behind them, is copied to Model::taps in this
    /// order; kTapEmbedding is the stream before the first layer.
    std::vector<uint32_t> tap_layers;
    static constexpr uint32_t kTapEmbedding = Step::kNoLayer;
    /// What matrices are multiplied with, where their formats allow.
    cpu::Activations activations = cpu::Activations::f32;
};

/// Finds the architecture, checks every tensor, and emits the steps.
/// Errors  hf::Error naming file, tensor or key, the value found and the value needed
ModelPlan plan_model(std::shared_ptr<const ModelFile> file, const LoadOptions& options);

/// Uploads the weights of a plan in their order, each where its residency says, and locks what is
/// read in place, if the plan's budget says so. All or nothing:
/// when an upload fails, what is there is given back in reverse order, and a retry may succeed.
/// progress  weights, after each
/// Errors    hf::Error when memory runs out or may not be locked; when the plan, what was loaded
/// and what the device's
///           allocator counts are not the same to the byte
Model load_model(ModelPlan plan, Device& device, const Log& log, const Progress& progress = {});

/// Both, with everything on the device and the device's activations.
Model load_model(std::shared_ptr<const ModelFile> file, Device& device, LoadOptions options,
                 const Log& log, const Progress& progress = {});

}  // namespace hf
