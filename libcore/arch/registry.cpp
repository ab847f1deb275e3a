#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "libcore/arch/arch.h"
#include "libcore/arch/architectures.h"
#include "libcore/arch/config_fields.h"
#include "libcore/base/error.h"

namespace hf {
namespace {

const Architecture kArchitectures[] = {
    llama(),
    qwen2(),
    qwen3(),
    qwen35(),
};

}  // namespace

std::span<const Architecture> architectures() {
    return kArchitectures;
}

std::string config_label(const ModelFile& file) {
    return file.path + (file.container == "safetensors" ? "/config.json" : ": config");
}

std::vector<int32_t> end_ids(const ModelFile& file) {
    std::vector<int32_t> ids;
    if (!file.config.empty())
        ids = ConfigFields(config_label(file), file.config).ids("eos_token_id");
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
        if (file.gguf.has(key)) ids.push_back(int32_t(file.gguf.uint(key, 0, INT32_MAX)));
    return ids;
}

const Architecture& architecture_of(const ModelFile& file) {
    const bool gguf = file.naming == Naming::gguf;
    const std::string found =
        gguf ? file.gguf.text("general.architecture", "")
             : ConfigFields(config_label(file), file.config).text("model_type", "");
    std::vector<std::string_view> known;
    for (const Architecture& arch : kArchitectures) {
        const size_t before = known.size();
        if (gguf)
            known.push_back(arch.gguf_name);
        else
            known.insert(known.end(), arch.model_types.begin(), arch.model_types.end());
        if (std::find(known.begin() + ptrdiff_t(before), known.end(), found) != known.end())
            return arch;
    }
    throw Error(fmt::format("{}: {} is '{}'; this build runs: {}", file.path,
                            gguf ? "general.architecture" : "model_type", found,
                            fmt::join(known, ", ")));
}

const Weight& LayerWeights::operator[](Role role) const {
    const Weight* weight = by_role[size_t(role)];
    HF_ASSERT(weight != nullptr);
    return *weight;
}

uint32_t ModelConfig::count(LayerKind kind) const {
    return uint32_t(std::ranges::count(layers, kind));
}

StateSpec state_spec(const ModelConfig& c) {
    StateSpec spec;
    spec.kv_layers = c.count(LayerKind::full_attention);
    spec.kv_heads = c.n_kv_heads;
    spec.head_dim = c.head_dim;
    spec.delta_layers = c.count(LayerKind::linear_attention);
    spec.key_heads = c.key_heads;
    spec.value_heads = c.value_heads;
    spec.key_dim = c.key_dim;
    spec.value_dim = c.value_dim;
    spec.conv_kernel = c.conv_kernel;
    spec.head_order = c.head_order;
    return spec;
}

namespace {

/// Slow turns become slower by the factor, fast ones stay, and those between are blended by how
/// often they turn within the original context.
double scaled(double f, const RopeScaling& s) {
    const double turns = s.original_positions * f / (2 * std::numbers::pi);
    if (turns > s.high_freq_factor) return f;
    if (turns < s.low_freq_factor) return f / s.factor;
    const double share = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
    return (1 - share) * f / s.factor + share * f;
}

}  // namespace

std::vector<float> rope_frequencies(const ModelConfig& c) {
    std::vector<float> f(c.rotary_dim / 2);
    for (size_t i = 0; i < f.size(); ++i)
        f[i] = float(scaled(std::pow(c.rope_theta, -2.0 * double(i) / double(c.rotary_dim)),
                            c.rope_scaling));
    return f;
}

}  // namespace hf
