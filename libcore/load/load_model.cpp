#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/codec/decode.h"
#include "libcore/load/mapped_weights.h"
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

/// The last one first, as they lie in memory.
void give_back(std::vector<PlannedWeight>& weights) {
    while (!weights.empty()) weights.pop_back();
}

std::string by_residency(const uint64_t (&bytes)[kResidencies]) {
    return fmt::format("{} on the device, {} pinned, {} plain", bytes[0], bytes[1], bytes[2]);
}

/// Three counts that must agree: of the plan, of the load, and of the device's allocator.
void check_accounts(const Model& model, const MemoryUse& before, const MemoryUse& after) {
    const WeightTotals planned = planned_totals(model);
    const LoadStats& loaded = model.stats;
    if (planned != loaded)
        throw Error(
            fmt::format("{}: the plan has bytes {}, {} mirrored, but {}, {} mirrored were "
                        "loaded; please report this",
                        model.file->path, by_residency(planned.bytes), planned.mirrored_bytes,
                        by_residency(loaded.bytes), loaded.mirrored_bytes));
    uint64_t expected[kResidencies], taken[kResidencies];
    for (size_t r = 0; r < kResidencies; ++r) {
        expected[r] = loaded.allocated(Residency(r));
        taken[r] = after.bytes[r] - before.bytes[r];
    }
    if (!std::ranges::equal(expected, taken))
        throw Error(
            fmt::format("{}: bytes {} were loaded, but the device counts {}; please report "
                        "this",
                        model.file->path, by_residency(expected), by_residency(taken)));
}

uint64_t sum(const uint64_t (&bytes)[kResidencies]) {
    return bytes[0] + bytes[1] + bytes[2];
}

}  // namespace

Model load_model(ModelPlan plan, Device& device, const Log& log, const Progress& progress) {
    Model model{std::move(plan), {}, {}};
    try {
        const MemoryUse before = device.in_use();
        for (const PlannedWeight& w : model.weights) {
            upload_weight(device, model.stats, w, values_of(model, w.source));
            if (progress) progress(uint64_t(&w - model.weights.data() + 1), model.weights.size());
        }
        check_accounts(model, before, device.in_use());
        if (model.budget.lock) model.lock = PageLock(mapped_pages(model, device.info()));
    } catch (...) {
        give_back(model.weights);
        throw;
    }
    log.debug(
        fmt::format("{}: {}, {} layers, {} weights, bytes {} ({} in place, {} mirrored, {} "
                    "locked)",
                    model.file->path, model.arch->name, model.config.n_layers, model.weights.size(),
                    by_residency(model.stats.bytes), sum(model.stats.in_place),
                    model.stats.mirrored_bytes, model.lock.bytes()));
    return model;
}

Model load_model(std::shared_ptr<const ModelFile> file, Device& device, LoadOptions options,
                 const Log& log, const Progress& progress) {
    options.activations = device.info().activations;
    return load_model(plan_model(std::move(file), options), device, log, progress);
}

}  // namespace hf
