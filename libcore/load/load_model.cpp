#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/codec/decode.h"
#include "libcore/load/model.h"
#include "libcore/load/tensor_plan.h"
#include "libcore/load/upload_weight.h"

namespace hf {
namespace {

/// A tensor's values in float32, in their effective form.
std::vector<float> effective_values(const PlannedTensor& planned, Values values_of_file) {
    const TensorView& t = *planned.tensor;
    std::vector<float> values =
        decode_flat(*t.codec, t.bytes.data(), planned.shape.rows * planned.shape.cols);
    if (values_of_file == Values::gguf) return values;  // those files store effective values
    for (float& v : values) {
        if (planned.row->change == Change::plus_one) v = 1.0f + v;
        if (planned.row->change == Change::neg_exp) v = -std::exp(v);
    }
    return values;
}

/// Uploads what was planned and files each weight under its role.
struct Loader {
    Model& model;
    Device& device;
    LayerWeights of_model;
    std::vector<LayerWeights> of_layer;
    std::vector<std::span<const std::byte>> scales;  // AWQ, without doubles

    void keep(Role role, uint32_t layer, std::unique_ptr<Weight> weight) {
        LayerWeights& home = layer == Step::kNoLayer ? of_model : of_layer[layer];
        home.by_role[size_t(role)] = weight.get();
        model.weights.push_back(std::move(weight));
    }

    void load(const PlannedTensor& p) {
        auto weight = p.row->use == Use::matrix
                          ? upload_weight(device, model.stats, p.tensor->name, *p.tensor->codec,
                                          p.shape, p.tensor->bytes)
                          : upload_vector(device, model.stats, p.tensor->name, p.shape,
                                          effective_values(p, model.file->values));
        if (p.levels) weight->levels = load_sidecar(*p.levels);
        if (p.awq_scale) {
            weight->awq_scale = load_sidecar(*p.awq_scale);
            weight->awq_id = id_of_scale(p.awq_scale->bytes);
        }
        keep(p.row->role, p.layer, std::move(weight));
    }

    Buffer load_sidecar(const TensorView& t) {
        const uint64_t n = t.dims[0];
        return std::move(upload_vector(device, model.stats, t.name, {1, n},
                                       decode_flat(*t.codec, t.bytes.data(), n))
                             ->buffer);
    }

    /// Equal bytes have equal ids, from 1.
    uint32_t id_of_scale(std::span<const std::byte> bytes) {
        for (size_t i = 0; i < scales.size(); ++i)
            if (std::ranges::equal(scales[i], bytes)) return uint32_t(i + 1);
        scales.push_back(bytes);
        return uint32_t(scales.size());
    }

    /// The frequencies, divided by what the file holds for that.
    void load_rope(const std::vector<PlannedTensor>& plan) {
        std::vector<float> f = rope_frequencies(model.config);
        for (const PlannedTensor& p : plan)
            if (p.row->role == Role::rope_divisors) {
                const std::vector<float> divisors = effective_values(p, model.file->values);
                for (size_t i = 0; i < f.size(); ++i) f[i] /= divisors[i];
            }
        keep(Role::rope_freqs, Step::kNoLayer,
             upload_vector(device, model.stats, "rope_freqs", {1, f.size()}, f));
    }
};

void emit_taps(Model& model, const Activations& a, const std::vector<uint32_t>& taps,
               uint32_t layer) {
    for (size_t i = 0; i < taps.size(); ++i)
        if (taps[i] == layer) model.steps.copy(a.x, model.taps, uint32_t(i * model.config.dim));
}

/// Embedding, layers, and the head on the rows whose logits are wanted.
void emit_steps(Model& model, const Loader& loader, const std::vector<uint32_t>& taps) {
    const ModelConfig& c = model.config;
    const Activations a = model.arch->declare_slots(model.slots, c);
    const Slot last = model.slots.add("x_last", c.dim, Rows::logits);
    model.normed = model.slots.add("h_last", c.dim, Rows::logits);
    model.logits = model.slots.add("logits", c.vocab, Rows::logits);
    if (!taps.empty()) model.taps = model.slots.add("taps", uint64_t(taps.size()) * c.dim);

    StepList& s = model.steps;
    s.embed(loader.of_model[Role::embedding], a.x);
    emit_taps(model, a, taps, LoadOptions::kTapEmbedding);
    uint32_t next_state[2] = {};  // by LayerKind
    for (uint32_t layer = 0; layer < c.n_layers; ++layer) {
        s.layer = layer;
        const LayerKind kind = c.layers[layer];
        model.arch->emit_layer(s, c, loader.of_layer[layer], loader.of_model, a,
                               {layer, next_state[size_t(kind)]++, kind});
        emit_taps(model, a, taps, layer);
    }
    s.layer = Step::kNoLayer;
    s.take_rows(a.x, last);
    s.rmsnorm(last, loader.of_model[Role::final_norm], c.rms_eps, model.normed);
    const Role head = c.tied_embeddings ? Role::embedding : Role::head;
    s.gemv(loader.of_model[head], model.normed, model.logits);
}

}  // namespace

Model load_model(std::shared_ptr<const ModelFile> file, Device& device, const LoadOptions& options,
                 const Log& log) {
    Model model;
    model.arch = &architecture_of(*file);
    model.config = model.arch->read_config(*file);
    const std::vector<PlannedTensor> plan = plan_tensors(*file, *model.arch, model.config);
    model.config.tied_embeddings = std::ranges::none_of(
        plan, [](const PlannedTensor& p) { return p.row->role == Role::head; });
    model.file = std::move(file);

    Loader loader{model, device, {}, std::vector<LayerWeights>(model.config.n_layers), {}};
    for (const PlannedTensor& p : plan)
        if (p.row->role != Role::rope_divisors) loader.load(p);
    loader.load_rope(plan);
    emit_steps(model, loader, options.tap_layers);
    model.state = state_spec(model.config);
    log.debug(fmt::format("{}: {}, {} layers, {} tensors, {} bytes of weights ({} in place)",
                          model.file->path, model.arch->name, model.config.n_layers, plan.size(),
                          model.stats.bytes[0], model.stats.in_place_bytes));
    return model;
}

}  // namespace hf
