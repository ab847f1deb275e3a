#include "libcore/quantize/source_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/codec/decode.h"
#include "libcore/load/tensor_plan.h"
#include "libcore/quantize/model_texts.h"

namespace hf {
namespace {

using C = ModelConfig;

/// Where GGUF has the value heads of a tensor in tiled order: from `first` on, `block` rows (of a
/// matrix), columns, or elements (of a vector) per head.
struct ValueHeads {
    Role role;
    bool are_columns;
    uint64_t (*first)(const C&);
    uint64_t (*block)(const C&);
};

constexpr auto kNone = [](const C&) -> uint64_t { return 0; };
constexpr auto kOne = [](const C&) -> uint64_t { return 1; };
constexpr auto kDim = [](const C& c) -> uint64_t { return c.value_dim; };

constexpr ValueHeads kValueHeads[] = {
    {Role::delta_qkv, false, [](const C& c) { return 2 * c.key_width(); }, kDim},
    {Role::delta_z, false, kNone, kDim},
    {Role::delta_b, false, kNone, kOne},
    {Role::delta_a, false, kNone, kOne},
    {Role::delta_conv, true, [](const C& c) { return 2 * c.key_width() * c.conv_kernel; },
     [](const C& c) { return uint64_t(c.value_dim) * c.conv_kernel; }},
    {Role::delta_dt_bias, true, kNone, kOne},
    {Role::delta_decay, true, kNone, kOne},
    {Role::delta_out, true, kNone, kDim},
};

std::vector<uint32_t> counted(uint64_t n) {
    std::vector<uint32_t> places(n);
    std::iota(places.begin(), places.end(), 0u);
    return places;
}

/// Head k * r + j of grouped order is head j * key_heads + k of tiled order.
std::vector<uint32_t> grouped_places(const C& c, uint64_t n, uint64_t first, uint64_t block) {
    std::vector<uint32_t> places = counted(n);
    const uint64_t per_key = c.value_heads / c.key_heads;
    for (uint64_t head = 0; head < c.value_heads; ++head) {
        const uint64_t tiled = head % per_key * c.key_heads + head / per_key;
        for (uint64_t i = 0; i < block; ++i)
            places[first + head * block + i] = uint32_t(first + tiled * block + i);
    }
    return places;
}

/// Rows i and i + dim / 2 of a head are neighbours where adjacent pairs turn together.
std::vector<uint32_t> half_split_places(const C& c, uint64_t n) {
    std::vector<uint32_t> places(n);
    const uint64_t dim = c.head_dim, half = dim / 2;
    for (uint64_t row = 0; row < n; ++row) {
        const uint64_t i = row % dim;
        places[row] = uint32_t(row - i + (i < half ? 2 * i : 2 * (i - half) + 1));
    }
    return places;
}

/// Where rows and columns of a tensor are stored; empty: in their places.
struct Places {
    std::vector<uint32_t> rows, cols;
};

Places places_of(const PlannedTensor& p, Shape shape, const C& c) {
    Places places;
    if (c.rope_pairs == RopePairs::adjacent &&
        (p.row->role == Role::attn_q || p.row->role == Role::attn_k))
        places.rows = half_split_places(c, shape.rows);
    if (c.head_order != HeadOrder::tiled || c.value_heads == c.key_heads) return places;
    for (const ValueHeads& v : kValueHeads) {
        if (v.role != p.row->role) continue;
        auto& moved = v.are_columns ? places.cols : places.rows;
        moved = grouped_places(c, v.are_columns ? shape.cols : shape.rows, v.first(c), v.block(c));
    }
    return places;
}

/// Reads one planned tensor, row by row, in Hugging Face's conventions.
struct Reader {
    const TensorView& tensor;  // of the file, which outlives this
    const Codec& codec;
    Shape shape;
    Places places;
    Change undo;                     // none: the values are Hugging Face's
    std::vector<float> awq, levels;  // of a matrix in an HFQ file, or empty
    bool is_vector;

    void read(uint64_t row, float* out) const {
        if (places.cols.empty()) return read_stored(row, out);
        std::vector<float> stored(shape.cols);
        read_stored(row, stored.data());
        for (size_t i = 0; i < stored.size(); ++i) out[i] = stored[places.cols[i]];
    }

    /// A row in the columns' stored order.
    void read_stored(uint64_t row, float* out) const {
        if (is_vector) {
            std::ranges::copy(decode_flat(codec, tensor.bytes.data(), shape.cols), out);
        } else {
            const auto* levels_bytes = reinterpret_cast<const std::byte*>(levels.data());
            decode_original(codec, view_of(codec, tensor.bytes.data(), shape, levels_bytes),
                            stored_row(row), {out, shape.cols});
        }
        for (size_t i = 0; i < awq.size(); ++i) out[i] /= awq[i];
        if (undo == Change::plus_one)
            for (size_t i = 0; i < shape.cols; ++i) out[i] -= 1.0f;
        if (undo == Change::neg_exp)
            for (size_t i = 0; i < shape.cols; ++i) out[i] = std::log(-out[i]);
    }

    uint64_t stored_row(uint64_t row) const { return places.rows.empty() ? row : places.rows[row]; }

    std::span<const std::byte> packed(uint64_t row) const {
        const uint64_t bytes = codec.row_bytes(shape.cols);
        return tensor.bytes.subspan(stored_row(row) * bytes, bytes);
    }
    bool can_copy() const {
        return !is_vector && places.cols.empty() && awq.empty() && codec.sidecar == Sidecar::none;
    }
};

std::vector<float> sidecar_values(const TensorView* t) {
    return t ? decode_flat(*t->codec, t->bytes.data(), t->dims[0]) : std::vector<float>();
}

void check_decay(const Reader& reader, const std::string& path) {
    if (reader.undo != Change::neg_exp) return;
    for (const float v : decode_flat(reader.codec, reader.tensor.bytes.data(), reader.shape.cols))
        if (!(v < 0))
            throw Error(fmt::format("{}: tensor '{}' holds {}; decays of a GGUF file are below 0",
                                    path, reader.tensor.name, v));
}

SourceTensor source_tensor(const PlannedTensor& p, const ModelFile& file, const C& config) {
    const bool is_vector = p.row->use == Use::vector;
    const Shape shape = is_vector ? Shape{1, p.shape.rows * p.shape.cols} : p.shape;
    auto reader = std::make_shared<const Reader>(
        Reader{.tensor = *p.tensor,
               .codec = *p.tensor->codec,
               .shape = shape,
               .places = places_of(p, shape, config),
               .undo = file.values == Values::gguf ? p.row->change : Change::none,
               .awq = sidecar_values(p.awq_scale),
               .levels = sidecar_values(p.levels),
               .is_vector = is_vector});
    check_decay(*reader, file.path);

    SourceTensor t;
    const TensorView& stored = *p.tensor;
    const bool gguf = file.naming == Naming::gguf;
    t.name = gguf ? hugging_face_name(*p.row, p.layer, "model.") : stored.name;
    t.role = p.row->role;
    t.use = p.row->use;
    t.dims = gguf || !is_vector
                 ? hugging_face_dims(*p.row, p.shape)
                 : std::vector(stored.dims.begin(), stored.dims.begin() + stored.n_dims);
    t.shape = shape;
    t.read_row = [reader](uint64_t row, float* out) { reader->read(row, out); };
    t.codec = stored.codec;
    t.bytes = stored.bytes.size();
    t.stored_name = stored.name;
    t.cols = reader->places.cols;
    if (reader->can_copy()) t.packed_row = [reader](uint64_t row) { return reader->packed(row); };
    return t;
}

/// Half a head's rows can only be put back when all of it turns.
void check_rope(const ModelFile& file, const C& c) {
    if (c.rope_pairs == RopePairs::adjacent && c.rotary_dim != c.head_dim)
        throw Error(
            fmt::format("{}: {} of {} dims of a head turn; rows of q and k cannot be put "
                        "into Hugging Face's order",
                        file.path, c.rotary_dim, c.head_dim));
}

struct ArchId {
    std::string_view name;  // Architecture::name
    uint32_t id;
};

constexpr ArchId kArchIds[] = {{"llama", 0}, {"qwen2", 7}, {"qwen3", 1}, {"qwen3.5", 5}};

}  // namespace

std::string hugging_face_name(const TensorRow& row, uint32_t layer, std::string_view prefix) {
    if (row.role == Role::head) return std::string(row.hf_name);
    if (row.in == In::model) return fmt::format("{}{}", prefix, row.hf_name);
    return fmt::format("{}layers.{}.{}", prefix, layer, row.hf_name);
}

std::vector<uint64_t> hugging_face_dims(const TensorRow& row, Shape shape) {
    if (row.use == Use::matrix) return {shape.rows, shape.cols};
    if (shape.rows == 1) return {shape.cols};
    return {shape.rows, 1, shape.cols};
}

uint32_t hfq_arch_id(const Architecture& arch) {
    for (const ArchId& row : kArchIds)
        if (row.name == arch.name) return row.id;
    throw Error(fmt::format("HFQ files have no number for {} models", arch.name));
}

SourceModel open_source_model(std::shared_ptr<const ModelFile> file, const Log& log) {
    const Architecture& arch = architecture_of(*file);
    const ModelConfig config = arch.read_config(*file);
    check_rope(*file, config);
    const std::vector<PlannedTensor> plan = plan_tensors(*file, arch, config);

    SourceModel model;
    model.label = file->path;
    model.arch_id = hfq_arch_id(arch);
    model.metadata = hfq_metadata(texts_of(*file, arch, config, plan));
    size_t used = 0;
    for (const PlannedTensor& p : plan) {
        used += 1 + (p.awq_scale != nullptr) + (p.levels != nullptr);
        if (p.row->role != Role::rope_divisors)  // texts_of() made them part of the configuration
            model.tensors.push_back(source_tensor(p, *file, config));
    }
    std::ranges::sort(model.tensors, {}, &SourceTensor::name);
    if (used < file->tensors.size())
        log.info(fmt::format("{} tensors are left out: they are not part of the text model",
                             file->tensors.size() - used));
    model.file = std::move(file);
    return model;
}

}  // namespace hf
