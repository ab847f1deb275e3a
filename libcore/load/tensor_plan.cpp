#include "libcore/load/tensor_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>

#include "libcore/base/error.h"

namespace hf {
namespace {

/// Dims without those of size 1, so that (C, 1, K) and (C, K), or (1, N) and (N), compare equal.
std::vector<uint64_t> squeezed(std::span<const uint64_t> dims) {
    std::vector<uint64_t> kept;
    for (const uint64_t dim : dims)
        if (dim != 1) kept.push_back(dim);
    return kept;
}

struct Finder {
    const ModelFile& file;
    const Architecture& arch;
    const ModelConfig& config;
    std::string prefix;  // before "embed_tokens.weight"
    std::set<std::string_view> claimed;
    std::vector<PlannedTensor> plan;

    bool gguf() const { return file.naming == Naming::gguf; }
    const std::string& where() const { return file.path; }
    std::string_view name_of(const TensorRow& row) const {
        return gguf() ? row.gguf_name : row.hf_name;
    }

    void find_prefix() {
        if (gguf()) return;
        for (const char* candidate : {"model.language_model.", "model.", ""}) {
            prefix = candidate;
            if (file.find(prefix + "embed_tokens.weight")) return;
        }
        throw Error(
            fmt::format("{}: no tensor 'embed_tokens.weight' under 'model.language_model.', "
                        "'model.' or no prefix; this is not a whole {} model",
                        where(), arch.name));
    }

    /// The head is outside the prefix in published files, inside it in some others.
    const TensorView* find_head(const TensorRow& row) const {
        for (const std::string& before : {std::string(), prefix, std::string("model.")})
            if (const TensorView* t = file.find(before + std::string(name_of(row)))) return t;
        return nullptr;
    }

    void check(const TensorView& t, const TensorRow& row, Shape shape) const {
        const uint64_t want[] = {shape.rows, shape.cols};
        if (squeezed({t.dims.data(), t.n_dims}) != squeezed(want))
            throw Error(fmt::format(
                "{}: tensor '{}' has shape ({}), but the configuration asks for "
                "({}, {}); the two do not belong together",
                where(), t.name, fmt::join(t.dims.begin(), t.dims.begin() + t.n_dims, ", "),
                shape.rows, shape.cols));
        if (!t.codec)
            throw Error(
                fmt::format("{}: tensor '{}' has type {}, which is not a weight format of "
                            "this build (docs/formats.md lists them)",
                            where(), t.name, t.dtype));
        if (row.use == Use::matrix && shape.cols % cols_unit(*t.codec) != 0)
            throw Error(
                fmt::format("{}: tensor '{}' has rows of {} values, but format {} needs a "
                            "multiple of {}",
                            where(), t.name, shape.cols, t.codec->name, cols_unit(*t.codec)));
    }

    /// A tensor that belongs to a weight: "W.weight" has "W.<suffix>".
    const TensorView* beside(const TensorView& t, std::string_view suffix, uint64_t count) {
        constexpr std::string_view kEnd = ".weight";
        std::string_view stem = t.name;
        if (stem.ends_with(kEnd)) stem.remove_suffix(kEnd.size());
        const TensorView* found = file.find(fmt::format("{}.{}", stem, suffix));
        if (!found) return nullptr;
        if (found->n_dims != 1 || found->dims[0] != count || !found->codec)
            throw Error(
                fmt::format("{}: tensor '{}' is a {} of ({}), but '{}' needs {} numbers", where(),
                            found->name, found->dtype,
                            fmt::join(found->dims.data(), found->dims.data() + found->n_dims, ", "),
                            t.name, count));
        claimed.insert(found->name);
        return found;
    }

    void find_sidecars(PlannedTensor& p) {
        if (p.row->use != Use::matrix) return;
        const Codec& codec = *p.tensor->codec;
        if (codec.takes_awq) p.awq_scale = beside(*p.tensor, "awq_scale.weight", p.shape.cols);
        if (codec.sidecar != Sidecar::levels) return;
        p.levels = beside(*p.tensor, "lloyd_levels.weight", kLloydLevels);
        if (!p.levels)
            throw Error(
                fmt::format("{}: tensor '{}' is in format {}, which needs its levels in "
                            "'lloyd_levels.weight' beside it",
                            where(), p.tensor->name, codec.name));
    }

    void take(const TensorRow& row, const TensorView* t, const std::string& name, uint32_t layer) {
        if (!t && row.is_optional) return;
        if (!t)
            throw Error(fmt::format("{}: tensor '{}' is missing; {} of {} layers needs it", where(),
                                    name, arch.name, config.n_layers));
        const Shape shape = row.shape(config);
        check(*t, row, shape);
        claimed.insert(t->name);
        plan.push_back({.row = &row, .tensor = t, .layer = layer, .shape = shape});
        find_sidecars(plan.back());
    }

    void find_model_tensors() {
        for (const TensorRow& row : arch.tensors) {
            if (row.in != In::model || name_of(row).empty()) continue;
            const std::string name = prefix + std::string(name_of(row));
            take(row, row.role == Role::head ? find_head(row) : file.find(name), name,
                 Step::kNoLayer);
        }
    }

    void find_layer_tensors(uint32_t layer) {
        const bool is_full = config.layers[layer] == LayerKind::full_attention;
        for (const TensorRow& row : arch.tensors) {
            const bool has = row.in == In::every_layer ||
                             row.in == (is_full ? In::full_layers : In::linear_layers);
            if (!has) continue;
            const std::string name =
                fmt::format("{}{}.{}.{}", prefix, gguf() ? "blk" : "layers", layer, name_of(row));
            take(row, file.find(name), name, layer);
        }
    }

    /// Tensors of something beside the text model: a vision tower, a draft head.
    bool is_ignored(std::string_view name) const {
        for (const std::string_view p : arch.ignored)
            if (name.starts_with(p)) return true;
        for (uint32_t i = 0; i < config.extra_blocks; ++i)
            if (name.starts_with(fmt::format("blk.{}.", config.n_layers + i))) return true;
        return false;
    }

    /// A tensor that nobody reads may change what the model computes: better to stop.
    void refuse_strangers() const {
        for (const TensorView& t : file.tensors) {
            if (claimed.contains(t.name) || is_ignored(t.name)) continue;
            throw Error(
                fmt::format("{}: tensor '{}' is not part of {} as this build knows it; "
                            "the configuration may name fewer layers than the file holds",
                            where(), t.name, arch.name));
        }
    }
};

}  // namespace

std::vector<PlannedTensor> plan_tensors(const ModelFile& file, const Architecture& arch,
                                        const ModelConfig& config) {
    Finder finder{file, arch, config, {}, {}, {}};
    finder.find_prefix();
    finder.find_model_tensors();
    for (uint32_t layer = 0; layer < config.n_layers; ++layer) finder.find_layer_tensors(layer);
    finder.refuse_strangers();
    return std::move(finder.plan);
}

}  // namespace hf
