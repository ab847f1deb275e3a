#include "libcore/quantize/synthetic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/quantize/model_texts.h"

namespace hf {
namespace {

/// One size of Qwen3.5. All have 248320 tokens, full attention in every fourth layer, heads of 256
/// and delta heads of 128.
/// Source  the published config.json of each size
struct Size {
    std::string_view name;
    uint32_t layers, dim, ffn_dim, heads, kv_heads, value_heads;
    bool tied;
};

constexpr Size kSizes[] = {
    {"qwen3.5-0.8b", 24, 1024, 3584, 8, 2, 16, true},
    {"qwen3.5-2b", 24, 2048, 6144, 8, 2, 16, true},
    {"qwen3.5-4b", 32, 2560, 9216, 16, 4, 32, true},
    {"qwen3.5-9b", 32, 4096, 12288, 16, 4, 32, false},
    {"qwen3.5-27b", 64, 5120, 17408, 24, 4, 48, false},
};

constexpr std::string_view kArchitecture = "qwen3.5";

const Size& size_by_name(std::string_view name) {
    for (const Size& size : kSizes)
        if (size.name == name) return size;
    throw Error(
        fmt::format("--synthetic {}: there are {}", name, fmt::join(synthetic_sizes(), ", ")),
        Fault::usage);
}

const Architecture& architecture() {
    return *std::ranges::find(architectures(), kArchitecture, &Architecture::name);
}

ModelConfig config_of(const Size& s) {
    ModelConfig c;
    c.model_type = architecture().model_types.front();
    c.vocab = 248320;
    c.dim = s.dim;
    c.ffn_dim = s.ffn_dim;
    c.n_layers = s.layers;
    c.max_positions = 262144;
    c.rms_eps = 1e-6f;
    for (uint32_t i = 0; i < s.layers; ++i)
        c.layers.push_back(i % 4 == 3 ? LayerKind::full_attention : LayerKind::linear_attention);
    c.n_heads = s.heads;
    c.n_kv_heads = s.kv_heads;
    c.head_dim = 256;
    c.rotary_dim = 64;
    c.rope_theta = 1e7;
    c.key_heads = 16;
    c.value_heads = s.value_heads;
    c.key_dim = c.value_dim = 128;
    c.conv_kernel = 4;
    c.tied_embeddings = s.tied;
    return c;
}

/// SplitMix64: https://prng.di.unimi.it/splitmix64.c
uint64_t next_random(uint64_t& state) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/// What a role's numbers are like: centre + spread * noise; noise has variance 1 and lies within
/// 2.45.
struct Numbers {
    float centre, spread;
};

/// Projections keep the size of their input. Those that write to the residual stream share what
/// they add among all of them. Decays and time steps are like those of a model before training.
Numbers numbers_of(Role role, const ModelConfig& c, uint64_t cols) {
    const float per_input = 1 / std::sqrt(float(cols));
    const float per_layer = 1 / std::sqrt(2 * float(c.n_layers));
    switch (role) {
        case Role::attn_o:
        case Role::delta_out:
        case Role::ffn_down:
            return {0, per_input * per_layer};
        case Role::delta_conv:
            return {0, 1 / std::sqrt(float(c.conv_kernel))};
        case Role::delta_norm:
            return {1, 0.05f};
        case Role::delta_decay:  // A_log: decays of e^0.2 .. e^2.6
            return {1.4f, 0.5f};
        case Role::delta_dt_bias:  // softplus of it: 0.004 .. 0.05
            return {-4.25f, 0.5f};
        default:
            return {0, per_input};
    }
}

/// Two numbers of triangular distribution from each 64 bits.
void fill_row(uint64_t seed, Numbers n, float* out, uint64_t cols) {
    const float unit = n.spread * std::sqrt(6.0f) / 65536;
    for (uint64_t i = 0; i < cols; i += 2) {
        const uint64_t bits = next_random(seed);
        for (uint64_t k = 0; k < 2 && i + k < cols; ++k) {
            const uint32_t pair = uint32_t(bits >> 32 * k);
            const int32_t sum = int32_t(pair & 0xffff) + int32_t(pair >> 16) - 65535;
            out[i + k] = n.centre + unit * float(sum);
        }
    }
}

/// Every tensor and row has its own stream.
uint64_t stream_seed(uint64_t seed, uint64_t tensor, uint64_t row) {
    uint64_t state = seed;
    for (const uint64_t part : {tensor, row}) state = next_random(state) ^ part;
    return next_random(state);
}

SourceTensor made_up(const TensorRow& row, uint32_t layer, const ModelConfig& c, uint64_t seed) {
    const Shape shape = row.shape(c);
    const bool is_vector = row.use == Use::vector;
    SourceTensor t;
    t.name = hugging_face_name(row, layer, "model.");
    t.role = row.role;
    t.use = row.use;
    t.dims = hugging_face_dims(row, shape);
    t.shape = is_vector ? Shape{1, shape.rows * shape.cols} : shape;
    const Numbers numbers = numbers_of(row.role, c, shape.cols);
    const uint64_t tensor = uint64_t(layer) << 8 | uint64_t(row.role);
    t.read_row = [=, cols = t.shape.cols](uint64_t r, float* out) {
        fill_row(stream_seed(seed, tensor, r), numbers, out, cols);
    };
    return t;
}

bool has(const TensorRow& row, LayerKind kind) {
    return row.in == In::every_layer ||
           row.in == (kind == LayerKind::full_attention ? In::full_layers : In::linear_layers);
}

}  // namespace

std::vector<std::string_view> synthetic_sizes() {
    std::vector<std::string_view> names;
    for (const Size& size : kSizes) names.push_back(size.name);
    return names;
}

SourceModel synthetic_model(std::string_view size, uint64_t seed, const ModelFile& texts_from) {
    const Architecture& arch = architecture();
    const ModelConfig c = config_of(size_by_name(size));
    ModelTexts texts = token_texts_of(texts_from);
    texts.architecture = c.model_type;
    texts.config = config_json(arch, c, /*end_ids=*/{});

    SourceModel model;
    model.label = fmt::format("{}, seed {}", size, seed);
    model.arch_id = hfq_arch_id(arch);
    model.metadata = hfq_metadata(texts);
    for (const TensorRow& row : arch.tensors) {
        if (row.in == In::model) {
            if (row.role != Role::head || !c.tied_embeddings)
                model.tensors.push_back(made_up(row, Step::kNoLayer, c, seed));
            continue;
        }
        for (uint32_t layer = 0; layer < c.n_layers; ++layer)
            if (has(row, c.layers[layer])) model.tensors.push_back(made_up(row, layer, c, seed));
    }
    std::ranges::sort(model.tensors, {}, &SourceTensor::name);
    return model;
}

}  // namespace hf
