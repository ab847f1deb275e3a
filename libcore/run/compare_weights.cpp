#include "libcore/run/compare_weights.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/codec/decode.h"
#include "libcore/load/tensor_plan.h"

namespace hf {
namespace {

/// A matrix, ready to be decoded row by row.
struct Matrix {
    const Codec& codec;
    cpu::WeightView view;
    std::vector<float> awq_scale;  // (cols), or empty

    explicit Matrix(const PlannedTensor& p)
        : codec(*p.tensor->codec),
          view(view_of(codec, p.tensor->bytes.data(), p.shape,
                       p.levels ? p.levels->bytes.data() : nullptr)) {
        if (p.awq_scale)
            awq_scale = decode_flat(*p.awq_scale->codec, p.awq_scale->bytes.data(), p.shape.cols);
    }

    void decode(size_t row, std::span<float> out) const {
        decode_original(codec, view, row, out);
        for (size_t k = 0; k < awq_scale.size(); ++k) out[k] /= awq_scale[k];
    }
};

std::vector<PlannedTensor> matrices(const ModelFile& file) {
    const Architecture& arch = architecture_of(file);
    std::vector<PlannedTensor> plan = plan_tensors(file, arch, arch.read_config(file));
    std::erase_if(plan, [](const PlannedTensor& p) { return p.row->use != Use::matrix; });
    return plan;
}

/// The tensor of the original that plays the same part.
const PlannedTensor& find_same(const std::vector<PlannedTensor>& original, const PlannedTensor& p,
                               const ModelFile& file, const ModelFile& original_file) {
    for (const PlannedTensor& o : original)
        if (o.row->role == p.row->role && o.layer == p.layer && o.shape == p.shape) return o;
    throw Error(
        fmt::format("{}: tensor '{}' ({}, {}) has no tensor like it in {}; the two are not "
                    "the same model",
                    file.path, p.tensor->name, p.shape.rows, p.shape.cols, original_file.path));
}

/// Sums over one row, and later over rows.
struct Sums {
    double error2 = 0, original2 = 0;
};

Sums compare_rows(std::span<const float> w, std::span<const float> original) {
    Sums s;
    for (size_t k = 0; k < w.size(); ++k) {
        const double o = original[k], d = double(w[k]) - o;
        s.error2 += d * d;
        s.original2 += o * o;
    }
    return s;
}

Sums compare_matrices(const PlannedTensor& p, const PlannedTensor& o, cpu::ThreadPool& pool) {
    const Matrix a(p), b(o);
    const size_t cols = p.shape.cols, rows = p.shape.rows;
    std::vector<float> scratch(pool.size() * 2 * cols);
    std::vector<Sums> of_row(rows);
    pool.run(uint32_t(rows), [&](uint32_t r, unsigned member) {
        const auto mine = std::span(scratch).subspan(member * 2 * cols, 2 * cols);
        a.decode(r, mine.first(cols));
        b.decode(r, mine.last(cols));
        of_row[r] = compare_rows(mine.first(cols), mine.last(cols));
    });
    Sums all;
    for (const Sums& s : of_row) {
        all.error2 += s.error2;
        all.original2 += s.original2;
    }
    return all;
}

double relative(double error2, double original2) {
    return error2 == 0 ? 0 : std::sqrt(error2 / original2);
}

void add(std::vector<FormatError>& formats, const PlannedTensor& p, const Sums& sums) {
    auto found = std::ranges::find(formats, p.tensor->codec, &FormatError::codec);
    if (found == formats.end())
        found = formats.insert(found, {.codec = p.tensor->codec, .worst = {}});
    found->tensors += 1;
    found->weights += p.shape.rows * p.shape.cols;
    found->error2 += sums.error2;
    found->original2 += sums.original2;
    const double error = relative(sums.error2, sums.original2);
    // a NaN is worse than any number
    const bool is_worse = error > found->worst_error || std::isnan(error);
    if (!found->worst.empty() && (std::isnan(found->worst_error) || !is_worse)) return;
    found->worst = p.tensor->name;
    found->worst_error = error;
}

}  // namespace

double FormatError::relative_error() const {
    return relative(error2, original2);
}

std::vector<FormatError> compare_weights(const ModelFile& model, const ModelFile& original,
                                         cpu::ThreadPool& pool, const Progress& on_progress) {
    if (model.values != original.values)
        throw Error(
            fmt::format("{} and {} follow different conventions (Hugging Face's and GGUF's),"
                        " so their weights cannot be compared",
                        model.path, original.path));
    const std::vector<PlannedTensor> plan = matrices(model), originals = matrices(original);
    std::vector<FormatError> formats;
    for (size_t i = 0; i < plan.size(); ++i) {
        const PlannedTensor& same = find_same(originals, plan[i], model, original);
        add(formats, plan[i], compare_matrices(plan[i], same, pool));
        if (on_progress) on_progress(i + 1, plan.size());
    }
    return formats;
}

}  // namespace hf
