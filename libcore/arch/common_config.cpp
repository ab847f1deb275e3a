#include "libcore/arch/common_config.h"

#include <fmt/format.h>

#include <algorithm>

namespace hf {
namespace {

void read_heads(const ConfigFields& f, const ConfigDefaults& d, ModelConfig& c) {
    c.n_heads = f.uint("num_attention_heads", 1, 1024, d.n_heads);
    c.n_kv_heads = f.uint("num_key_value_heads", 1, 1024, d.n_kv_heads.value_or(c.n_heads));
    if (c.n_heads % c.n_kv_heads != 0 || c.n_heads / c.n_kv_heads > 64)
        f.fail("num_attention_heads", fmt::format("is {}; it must be 1 to 64 times "
                                                  "num_key_value_heads, which is {}",
                                                  c.n_heads, c.n_kv_heads));
    c.head_dim = f.uint("head_dim", 2, 512, d.head_dim.value_or(std::max(c.dim / c.n_heads, 2u)));
    const double share =
        f.number("partial_rotary_factor", 0, 1,
                 f.number("rope_parameters.partial_rotary_factor", 0, 1, d.rotary_share));
    c.rotary_dim = uint32_t(double(c.head_dim) * share);
    if (c.rotary_dim < 2 || c.rotary_dim % 2 != 0)
        f.fail("partial_rotary_factor",
               fmt::format("is {}: {} of {} dims would turn; it must be an "
                           "even number, at least 2",
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
    refuse_unbuilt(f);
    ModelConfig c;
    c.model_type = f.text("model_type", "");
    c.vocab = f.uint("vocab_size", 1, 1 << 24, d.vocab);
    c.dim = f.uint("hidden_size", 1, 1 << 20, d.dim);
    c.ffn_dim = f.uint("intermediate_size", 1, 1 << 20, d.ffn_dim);
    c.n_layers = f.uint("num_hidden_layers", 1, 1024, d.n_layers);
    c.max_positions = f.uint("max_position_embeddings", 1, 1 << 24, d.max_positions);
    c.rms_eps = float(f.number("rms_norm_eps", 0, 1, 1e-6));
    c.eos_ids = f.ids("eos_token_id");
    read_heads(f, d, c);
    read_rope(f, d.rope_theta, c);
    return c;
}

}  // namespace hf
