#include "libcore/arch/common_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "libcore/base/error.h"

namespace hf {
namespace {

/// Works on the fields of either container; both report by their own key.
template <class Fields>
void check_heads(const Fields& f, std::string_view key, const ModelConfig& c) {
    if (c.n_heads % c.n_kv_heads != 0 || c.n_heads / c.n_kv_heads > 64)
        f.fail(key,
               fmt::format("is {}; it must be 1 to 64 times the number of key and value heads, "
                           "which is {}",
                           c.n_heads, c.n_kv_heads));
}

void read_heads(const ConfigFields& f, const ConfigDefaults& d, ModelConfig& c) {
    c.n_heads = f.uint("num_attention_heads", 1, 1024, d.n_heads);
    c.n_kv_heads = f.uint("num_key_value_heads", 1, 1024, d.n_kv_heads.value_or(c.n_heads));
    check_heads(f, "num_attention_heads", c);
    c.head_dim = f.uint("head_dim", 2, 512, d.head_dim.value_or(std::max(c.dim / c.n_heads, 2u)));
    const double share =
        f.number("partial_rotary_factor", 0, 1,
                 f.number("rope_parameters.partial_rotary_factor", 0, 1, d.rotary_share));
    c.rotary_dim = uint32_t(double(c.head_dim) * share);
    if (c.rotary_dim < 2 || c.rotary_dim % 2 != 0)
        f.fail("partial_rotary_factor",
               fmt::format("is {}: {} of {} dims would turn; it must be an even number, at least 2",
                           share, c.rotary_dim, c.head_dim));
}

/// Two spellings: rope_parameters{rope_type, rope_theta, ...}, or flat rope_theta with
/// rope_scaling{rope_type or type, ...}.
void read_rope(const ConfigFields& f, double default_theta, ModelConfig& c) {
    const std::string scaling = f.has("rope_parameters") ? "rope_parameters." : "rope_scaling.";
    c.rope_theta = f.number("rope_parameters.rope_theta", 1, 1e12,
                            f.number("rope_theta", 1, 1e12, default_theta));
    const std::string type = f.text(scaling + "rope_type", f.text(scaling + "type", "default"));
    if (type == "default") return;
    if (type != "llama3")
        f.fail(scaling + "rope_type",
               fmt::format("is '{}'; this build knows default and llama3", type));
    RopeScaling& s = c.rope_scaling;
    s.factor = f.number(scaling + "factor", 1, 1e6);
    s.low_freq_factor = f.number(scaling + "low_freq_factor", 1e-6, 1e6);
    s.high_freq_factor = f.number(scaling + "high_freq_factor", 1e-6, 1e6);
    s.original_positions = f.number(scaling + "original_max_position_embeddings", 1, 1e9);
    if (s.high_freq_factor <= s.low_freq_factor)
        f.fail(scaling + "high_freq_factor", fmt::format("is {}; it must be above low_freq_factor, "
                                                         "which is {}",
                                                         s.high_freq_factor, s.low_freq_factor));
}

void refuse_unbuilt(const ConfigFields& f) {
    if (const std::string act = f.text("hidden_act", "silu"); act != "silu")
        f.fail("hidden_act", fmt::format("is '{}'; this build knows silu", act));
    for (const char* key : {"attention_bias", "mlp_bias", "use_sliding_window"})
        if (f.boolean(key, false)) f.fail(key, "is true, which this build does not have");
}

}  // namespace

ModelConfig read_common(const ConfigFields& f, const ConfigDefaults& d) {
    for (const char* key : {"text_config", "rope_parameters", "rope_scaling"}) f.check_object(key);
    refuse_unbuilt(f);
    ModelConfig c;
    c.model_type = f.text("model_type", "");
    c.vocab = f.uint("vocab_size", 1, 1 << 24, d.vocab);
    c.dim = f.uint("hidden_size", 1, 1 << 20, d.dim);
    c.ffn_dim = f.uint("intermediate_size", 1, 1 << 20, d.ffn_dim);
    c.n_layers = f.uint("num_hidden_layers", 1, 1024, d.n_layers);
    c.max_positions = f.uint("max_position_embeddings", 1, 1 << 24, d.max_positions);
    c.rms_eps = float(f.number("rms_norm_eps", 0, 1, 1e-6));
    read_heads(f, d, c);
    read_rope(f, d.rope_theta, c);
    return c;
}

namespace {

/// A number that a file may give once or once per layer; the layers that have one must agree.
uint32_t same_in_all_layers(const GgufKeys& k, const std::string& key, uint32_t blocks,
                            uint32_t most, std::optional<uint32_t> fallback) {
    uint32_t found = 0;
    for (const uint32_t value : k.uints(key, blocks, 0, most, fallback)) {
        if (value != 0 && found != 0 && value != found)
            k.fail(key,
                   fmt::format("is {} in one layer and {} in another, which this build does not "
                               "have",
                               found, value));
        found = std::max(found, value);
    }
    if (found == 0) k.fail(key, fmt::format("is 0; it must be from 1 to {}", most));
    return found;
}

uint32_t rows_of_embedding(const ModelFile& file) {
    const TensorView* t = file.find("token_embd.weight");
    if (!t) throw Error(file.path + ": tensor 'token_embd.weight' is missing; this is no model");
    if (t->shape.rows > (1 << 24))
        throw Error(fmt::format("{}: the vocabulary has {} tokens, at most {} are allowed",
                                file.path, t->shape.rows, 1 << 24));
    return uint32_t(t->shape.rows);
}

}  // namespace

ModelConfig read_common_gguf(const ModelFile& file, std::string_view arch) {
    const GgufKeys& k = file.gguf;
    const auto key = [&](std::string_view rest) { return fmt::format("{}.{}", arch, rest); };
    ModelConfig c;
    c.model_type = arch;
    const uint32_t blocks = k.uint(key("block_count"), 1, 1024);
    c.extra_blocks = k.uint(key("nextn_predict_layers"), 0, blocks - 1, 0);
    c.n_layers = blocks - c.extra_blocks;
    c.vocab = rows_of_embedding(file);
    c.dim = k.uint(key("embedding_length"), 1, 1 << 20);
    c.ffn_dim = same_in_all_layers(k, key("feed_forward_length"), blocks, 1 << 20, std::nullopt);
    c.max_positions = k.uint(key("context_length"), 1, 1 << 24);
    c.rms_eps = float(k.number(key("attention.layer_norm_rms_epsilon"), 0, 1));
    c.n_heads = same_in_all_layers(k, key("attention.head_count"), blocks, 1024, std::nullopt);
    c.n_kv_heads = same_in_all_layers(k, key("attention.head_count_kv"), blocks, 1024, c.n_heads);
    check_heads(k, key("attention.head_count"), c);
    c.head_dim = k.uint(key("attention.key_length"), 2, 512, std::max(c.dim / c.n_heads, 2u));
    if (const uint32_t v = k.uint(key("attention.value_length"), 2, 512, c.head_dim);
        v != c.head_dim)
        k.fail(key("attention.value_length"),
               fmt::format("is {}; this build needs it to equal key_length, which is {}", v,
                           c.head_dim));
    c.rotary_dim = k.uint(key("rope.dimension_count"), 2, c.head_dim, c.head_dim);
    if (c.rotary_dim % 2)
        k.fail(key("rope.dimension_count"), fmt::format("is {}; it must be even", c.rotary_dim));
    c.rope_theta = k.number(key("rope.freq_base"), 1, 1e12, 10000);
    if (const std::string type = k.text(key("rope.scaling.type"), "none"); type != "none")
        k.fail(key("rope.scaling.type"), fmt::format("is '{}'; this build knows none", type));
    return c;
}

}  // namespace hf
