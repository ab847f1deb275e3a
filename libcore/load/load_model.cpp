#include <fmt/format.h>

#include <cmath>

#include "libcore/codec/decode.h"
#include "libcore/load/model.h"
#include "libcore/load/upload_weight.h"

namespace hf {
namespace {

/// A tensor's values in float32, in their effective form.
std::vector<float> effective_values(const TensorView& t, uint64_t count, Change change,
                                    Values values_of_file) {
    std::vector<float> values = decode_flat(*t.codec, t.bytes.data(), count);
    if (values_of_file == Values::gguf) return values;  // those files store effective values
    for (float& v : values) {
        if (change == Change::plus_one) v = 1.0f + v;
        if (change == Change::neg_exp) v = -std::exp(v);
    }
    return values;
}

/// The frequencies, divided by what the file holds for that.
std::vector<float> rope_values(const ModelPlan& model, const TensorView* divisors) {
    std::vector<float> f = rope_frequencies(model.config);
    if (!divisors) return f;
    const auto by = effective_values(*divisors, f.size(), Change::none, model.file->values);
    for (size_t i = 0; i < f.size(); ++i) f[i] /= by[i];
    return f;
}

/// What a vector becomes; nothing for a matrix, whose bytes stay as they are.
std::vector<float> values_of(const ModelPlan& model, const PlannedTensor& p) {
    if (p.row->use == Use::matrix) return {};
    if (p.row->role == Role::rope_freqs) return rope_values(model, p.tensor);
    return effective_values(*p.tensor, p.shape.rows * p.shape.cols, p.row->change,
                            model.file->values);
}

}  // namespace

Model load_model(ModelPlan plan, Device& device, const Log& log) {
    Model model{std::move(plan), {}};
    for (const PlannedWeight& w : model.weights)
        upload_weight(device, model.stats, w, values_of(model, w.source));
    log.debug(
        fmt::format("{}: {}, {} layers, {} weights, {} bytes of them on the device, {} in "
                    "host memory ({} in place)",
                    model.file->path, model.arch->name, model.config.n_layers, model.weights.size(),
                    model.stats.bytes[size_t(Residency::device)],
                    model.stats.bytes[size_t(Residency::host_mapped)] +
                        model.stats.bytes[size_t(Residency::host_plain)],
                    model.stats.in_place_bytes));
    return model;
}

Model load_model(std::shared_ptr<const ModelFile> file, Device& device, const LoadOptions& options,
                 const Log& log) {
    return load_model(plan_model(std::move(file), options), device, log);
}

}  // namespace hf
