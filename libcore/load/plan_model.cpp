#include <algorithm>

#include "libcore/load/model.h"
#include "libcore/plan/lower_activations.h"
#include "libcore/plan/lower_rotations.h"

namespace hf {
namespace {

/// Makes a weight of each planned tensor and files it under its role.
struct Planner {
    ModelPlan& model;
    LayerWeights of_model;
    std::vector<LayerWeights> of_layer;
    std::vector<std::span<const std::byte>> scales;  // AWQ, without doubles

    void add(const PlannedTensor& p, std::string name, const Codec& codec) {
        auto weight = std::make_unique<Weight>();
        weight->name = std::move(name);
        weight->codec = &codec;
        weight->shape = p.shape;
        if (p.awq_scale) weight->awq_id = id_of_scale(p.awq_scale->bytes);
        LayerWeights& home = p.layer == Step::kNoLayer ? of_model : of_layer[p.layer];
        home.by_role[size_t(p.row->role)] = weight.get();
        model.weights.push_back({std::move(weight), p});
    }

    void add(const PlannedTensor& p) {
        const bool is_matrix = p.row->use == Use::matrix;
        add(p, p.tensor->name, is_matrix ? *p.tensor->codec : *codec_by_name("f32"));
    }

    /// Equal bytes have equal ids, from 1.
    uint32_t id_of_scale(std::span<const std::byte> bytes) {
        for (size_t i = 0; i < scales.size(); ++i)
            if (std::ranges::equal(scales[i], bytes)) return uint32_t(i + 1);
        scales.push_back(bytes);
        return uint32_t(scales.size());
    }

    /// The frequencies are made at load; of a file they take at most divisors.
    void add_rope(const PlannedTensor* divisors) {
        static constexpr TensorRow kRow = {.role = Role::rope_freqs,
                                           .in = In::model,
                                           .hf_name = "",
                                           .gguf_name = "",
                                           .use = Use::vector,
                                           .change = Change::none,
                                           .shape = nullptr};
        const PlannedTensor p{&kRow,
                              divisors ? divisors->tensor : nullptr,
                              Step::kNoLayer,
                              {1, model.config.rotary_dim / 2}};
        add(p, "rope_freqs", *codec_by_name("f32"));
    }
};

void emit_taps(StepList& steps, const ModelPlan& model, const Activations& a,
               const std::vector<uint32_t>& taps, uint32_t layer) {
    for (size_t i = 0; i < taps.size(); ++i)
        if (taps[i] == layer) steps.copy(a.x, model.taps, uint32_t(i * model.config.dim));
}

/// Embedding, layers, and the head on the rows whose logits are wanted.
StepList emit_steps(ModelPlan& model, const Planner& planner, const std::vector<uint32_t>& taps) {
    const ModelConfig& c = model.config;
    const Activations a = model.arch->declare_slots(model.slots, c);
    const Slot last = model.slots.add("x_last", c.dim, Rows::logits);
    model.normed = model.slots.add("h_last", c.dim, Rows::logits);
    model.logits = model.slots.add("logits", c.vocab, Rows::logits);
    if (!taps.empty()) model.taps = model.slots.add("taps", uint64_t(taps.size()) * c.dim);

    StepList s;
    s.embed(planner.of_model[Role::embedding], a.x);
    emit_taps(s, model, a, taps, LoadOptions::kTapEmbedding);
    uint32_t next_state[2] = {};  // by LayerKind
    for (uint32_t layer = 0; layer < c.n_layers; ++layer) {
        s.layer = layer;
        const LayerKind kind = c.layers[layer];
        model.arch->emit_layer(s, c, planner.of_layer[layer], planner.of_model, a,
                               {layer, next_state[size_t(kind)]++, kind});
        emit_taps(s, model, a, taps, layer);
    }
    s.layer = Step::kNoLayer;
    s.take_rows(a.x, last);
    s.rmsnorm(last, planner.of_model[Role::final_norm], c.rms_eps, model.normed);
    const Role head = c.tied_embeddings ? Role::embedding : Role::head;
    s.gemv(planner.of_model[head], model.normed, model.logits);
    return s;
}

}  // namespace

ModelPlan plan_model(std::shared_ptr<const ModelFile> file, const LoadOptions& options) {
    ModelPlan model;
    model.arch = &architecture_of(*file);
    model.config = model.arch->read_config(*file);
    const std::vector<PlannedTensor> tensors = plan_tensors(*file, *model.arch, model.config);
    model.config.tied_embeddings = std::ranges::none_of(
        tensors, [](const PlannedTensor& p) { return p.row->role == Role::head; });
    model.file = std::move(file);

    Planner planner{model, {}, std::vector<LayerWeights>(model.config.n_layers), {}};
    const PlannedTensor* divisors = nullptr;
    for (const PlannedTensor& p : tensors)
        if (p.row->role == Role::rope_divisors)
            divisors = &p;
        else
            planner.add(p);
    planner.add_rope(divisors);
    const StepList list = emit_steps(model, planner, options.tap_layers);
    model.steps = lower_activations(lower_rotations(list.steps, model.slots), options.activations,
                                    model.slots);
    model.state = state_spec(model.config);
    return model;
}

}  // namespace hf
