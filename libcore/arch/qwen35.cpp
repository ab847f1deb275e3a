// Qwen3.5 dense: gated delta-net layers with a full-attention layer after every few.
// Source: the published config.json and safetensors of Qwen3.5-0.8B .. 27B, and the Qwen3_5 classes
// of Hugging Face transformers; the delta net is arXiv 2412.06464.
#include <fmt/format.h>

#include "libcore/arch/architectures.h"
#include "libcore/arch/common_config.h"
#include "libcore/arch/emit_ffn.h"

namespace hf {
namespace {

using C = ModelConfig;

// clang-format off
constexpr TensorRow kTensors[] = {
    // Norm weights are stored as offsets (effective: 1 + w), except the delta net's own norm.
    {Role::embedding,     In::model,         "embed_tokens.weight",             "token_embd.weight",         Use::matrix, Change::none,     [](const C& c) { return Shape{c.vocab, c.dim}; }},
    {Role::final_norm,    In::model,         "norm.weight",                     "output_norm.weight",        Use::vector, Change::plus_one, [](const C& c) { return Shape{1, c.dim}; }},
    {Role::head,          In::model,         "lm_head.weight",                  "output.weight",             Use::matrix, Change::none,     [](const C& c) { return Shape{c.vocab, c.dim}; }, true},

    {Role::attn_norm,     In::every_layer,   "input_layernorm.weight",          "attn_norm.weight",          Use::vector, Change::plus_one, [](const C& c) { return Shape{1, c.dim}; }},
    {Role::attn_q,        In::full_layers,   "self_attn.q_proj.weight",         "attn_q.weight",             Use::matrix, Change::none,     [](const C& c) { return Shape{2 * c.attention_width(), c.dim}; }},
    {Role::attn_k,        In::full_layers,   "self_attn.k_proj.weight",         "attn_k.weight",             Use::matrix, Change::none,     [](const C& c) { return Shape{c.kv_width(), c.dim}; }},
    {Role::attn_v,        In::full_layers,   "self_attn.v_proj.weight",         "attn_v.weight",             Use::matrix, Change::none,     [](const C& c) { return Shape{c.kv_width(), c.dim}; }},
    {Role::attn_o,        In::full_layers,   "self_attn.o_proj.weight",         "attn_output.weight",        Use::matrix, Change::none,     [](const C& c) { return Shape{c.dim, c.attention_width()}; }},
    {Role::attn_q_norm,   In::full_layers,   "self_attn.q_norm.weight",         "attn_q_norm.weight",        Use::vector, Change::plus_one, [](const C& c) { return Shape{1, c.head_dim}; }},
    {Role::attn_k_norm,   In::full_layers,   "self_attn.k_norm.weight",         "attn_k_norm.weight",        Use::vector, Change::plus_one, [](const C& c) { return Shape{1, c.head_dim}; }},

    {Role::delta_qkv,     In::linear_layers, "linear_attn.in_proj_qkv.weight",  "attn_qkv.weight",           Use::matrix, Change::none,     [](const C& c) { return Shape{c.conv_channels(), c.dim}; }},
    {Role::delta_z,       In::linear_layers, "linear_attn.in_proj_z.weight",    "attn_gate.weight",          Use::matrix, Change::none,     [](const C& c) { return Shape{c.value_width(), c.dim}; }},
    {Role::delta_b,       In::linear_layers, "linear_attn.in_proj_b.weight",    "ssm_beta.weight",           Use::matrix, Change::none,     [](const C& c) { return Shape{c.value_heads, c.dim}; }},
    {Role::delta_a,       In::linear_layers, "linear_attn.in_proj_a.weight",    "ssm_alpha.weight",          Use::matrix, Change::none,     [](const C& c) { return Shape{c.value_heads, c.dim}; }},
    {Role::delta_conv,    In::linear_layers, "linear_attn.conv1d.weight",       "ssm_conv1d.weight",         Use::vector, Change::none,     [](const C& c) { return Shape{c.conv_channels(), c.conv_kernel}; }},
    {Role::delta_dt_bias, In::linear_layers, "linear_attn.dt_bias",             "ssm_dt.bias",               Use::vector, Change::none,     [](const C& c) { return Shape{1, c.value_heads}; }},
    {Role::delta_decay,   In::linear_layers, "linear_attn.A_log",               "ssm_a",                     Use::vector, Change::neg_exp,  [](const C& c) { return Shape{1, c.value_heads}; }},
    {Role::delta_norm,    In::linear_layers, "linear_attn.norm.weight",         "ssm_norm.weight",           Use::vector, Change::none,     [](const C& c) { return Shape{1, c.value_dim}; }},
    {Role::delta_out,     In::linear_layers, "linear_attn.out_proj.weight",     "ssm_out.weight",            Use::matrix, Change::none,     [](const C& c) { return Shape{c.dim, c.value_width()}; }},

    {Role::ffn_norm,      In::every_layer,   "post_attention_layernorm.weight", "post_attention_norm.weight", Use::vector, Change::plus_one, [](const C& c) { return Shape{1, c.dim}; }},
    {Role::ffn_gate,      In::every_layer,   "mlp.gate_proj.weight",            "ffn_gate.weight",           Use::matrix, Change::none,     [](const C& c) { return Shape{c.ffn_dim, c.dim}; }},
    {Role::ffn_up,        In::every_layer,   "mlp.up_proj.weight",              "ffn_up.weight",             Use::matrix, Change::none,     [](const C& c) { return Shape{c.ffn_dim, c.dim}; }},
    {Role::ffn_down,      In::every_layer,   "mlp.down_proj.weight",            "ffn_down.weight",           Use::matrix, Change::none,     [](const C& c) { return Shape{c.dim, c.ffn_dim}; }},
};
// clang-format on

constexpr std::string_view kModelTypes[] = {"qwen3_5_text", "qwen3_5"};
constexpr std::string_view kGgufName = "qwen35";
constexpr std::string_view kIgnored[] = {"mtp.", "model.visual.", "visual."};

/// Full attention in layers n - 1, 2n - 1, ...
std::vector<LayerKind> every_nth(uint32_t n, uint32_t n_layers) {
    std::vector<LayerKind> layers(n_layers, LayerKind::linear_attention);
    for (uint32_t i = n - 1; i < n_layers; i += n) layers[i] = LayerKind::full_attention;
    return layers;
}

/// layer_types wins over the interval; without either every fourth layer is full attention.
std::vector<LayerKind> read_layers(const ConfigFields& f, uint32_t n_layers) {
    std::vector<LayerKind> layers;
    if (const auto types = f.texts("layer_types")) {
        for (const std::string& type : *types) {
            if (type != "full_attention" && type != "linear_attention")
                f.fail("layer_types", fmt::format("holds '{}'; known are full_attention and "
                                                  "linear_attention",
                                                  type));
            layers.push_back(type == "full_attention" ? LayerKind::full_attention
                                                      : LayerKind::linear_attention);
        }
        if (layers.size() != n_layers)
            f.fail("layer_types", fmt::format("has {} entries, but num_hidden_layers is {}",
                                              layers.size(), n_layers));
        return layers;
    }
    return every_nth(f.uint("full_attention_interval", 1, 1 << 16, 4), n_layers);
}

/// Defaults are those of Hugging Face's Qwen3_5 class.
constexpr ConfigDefaults kDefaults = {.vocab = 248320,
                                      .dim = 4096,
                                      .ffn_dim = 12288,
                                      .n_layers = 32,
                                      .n_heads = 16,
                                      .n_kv_heads = 4,
                                      .head_dim = 256,
                                      .max_positions = 262144,
                                      .rope_theta = 1e7,
                                      .rotary_share = 0.25};

void check_delta_net(const auto& fields, std::string_view key, const ModelConfig& c) {
    if (c.value_heads % c.key_heads != 0)
        fields.fail(key, fmt::format("is {}; it must be a multiple of the key heads, which are {}",
                                     c.value_heads, c.key_heads));
}

ModelConfig read_hf_config(const ModelFile& file) {
    const ConfigFields f(config_label(file), file.config);
    ModelConfig c = read_common(f, kDefaults);
    c.layers = read_layers(f, c.n_layers);
    c.key_heads = f.uint("linear_num_key_heads", 1, 1024, 16);
    c.value_heads = f.uint("linear_num_value_heads", 1, 1024, 32);
    c.key_dim = f.uint("linear_key_head_dim", 1, 512, 128);
    c.value_dim = f.uint("linear_value_head_dim", 1, 512, 128);
    c.conv_kernel = f.uint("linear_conv_kernel_dim", 2, 16, 4);
    check_delta_net(f, "linear_num_value_heads", c);
    return c;
}

/// Value heads lie in tiled order there, and both head dims are one number.
ModelConfig read_gguf_config(const ModelFile& file) {
    const GgufKeys& k = file.gguf;
    ModelConfig c = read_common_gguf(file, kGgufName);
    c.layers = every_nth(k.uint("qwen35.full_attention_interval", 1, 1 << 16, 4), c.n_layers);
    c.key_heads = k.uint("qwen35.ssm.group_count", 1, 1024);
    c.value_heads = k.uint("qwen35.ssm.time_step_rank", 1, 1024);
    c.key_dim = c.value_dim = k.uint("qwen35.ssm.state_size", 1, 512);
    c.conv_kernel = k.uint("qwen35.ssm.conv_kernel", 2, 16);
    check_delta_net(k, "qwen35.ssm.time_step_rank", c);
    if (const uint32_t inner = k.uint("qwen35.ssm.inner_size", 1, 1 << 20);
        inner != c.value_width())
        k.fail("qwen35.ssm.inner_size", fmt::format("is {}, but {} heads of {} make {}", inner,
                                                    c.value_heads, c.value_dim, c.value_width()));
    c.head_order = HeadOrder::tiled;
    return c;
}

ModelConfig read_config(const ModelFile& file) {
    return file.naming == Naming::gguf ? read_gguf_config(file) : read_hf_config(file);
}

Activations declare_slots(SlotTable& t, const ModelConfig& c) {
    Activations a;
    a.x = t.add("x", c.dim);
    a.h = t.add("h", c.dim);
    a.gate = t.add("ffn_gate", c.ffn_dim);
    a.up = t.add("ffn_up", c.ffn_dim);
    if (c.count(LayerKind::full_attention)) {
        a.q_gate = t.add("q_gate", 2 * c.attention_width());
        a.q = t.add("q", c.attention_width());
        a.k = t.add("k", c.kv_width());
        a.v = t.add("v", c.kv_width());
        a.attn = t.add("attn", c.attention_width());
    }
    if (c.count(LayerKind::linear_attention)) {
        a.m = t.add("m", c.conv_channels());
        a.qkv = t.add("qkv", c.conv_channels());
        a.z = t.add("z", c.value_width());
        a.b = t.add("b", c.value_heads);
        a.a = t.add("a", c.value_heads);
        a.g = t.add("g", c.value_heads);
        a.beta = t.add("beta", c.value_heads);
        a.o = t.add("o", c.value_width());
    }
    return a;
}

/// q_proj yields, per head, head_dim query values and head_dim gate values.
void emit_attention(StepList& s, const ModelConfig& c, const LayerWeights& w, const Weight& freqs,
                    const Activations& a, uint32_t state) {
    s.gemv(w[Role::attn_q], a.h, a.q_gate);
    s.gemv(w[Role::attn_k], a.h, a.k);
    s.gemv(w[Role::attn_v], a.h, a.v);
    s.head_norm(a.q_gate, w[Role::attn_q_norm], c.rms_eps, c.n_heads, 2 * c.head_dim, a.q);
    s.head_norm(a.k, w[Role::attn_k_norm], c.rms_eps, c.n_kv_heads, c.head_dim, a.k);
    s.rope(a.q, freqs, c.n_heads, c.rope_pairs);
    s.rope(a.k, freqs, c.n_kv_heads, c.rope_pairs);
    s.kv_write(a.k, a.v, state);
    s.attend(a.q, c.n_heads, state, a.attn);
    s.output_gate(a.attn, a.q_gate, c.n_heads, 2 * c.head_dim, c.head_dim, a.attn);
    s.gemv_residual(w[Role::attn_o], a.attn, a.x);
}

void emit_delta_net(StepList& s, const ModelConfig& c, const LayerWeights& w, const Activations& a,
                    uint32_t state) {
    s.gemv(w[Role::delta_qkv], a.h, a.m);
    s.gemv(w[Role::delta_z], a.h, a.z);
    s.gemv(w[Role::delta_b], a.h, a.b);
    s.gemv(w[Role::delta_a], a.h, a.a);
    s.conv_silu(a.m, w[Role::delta_conv], state, a.qkv);
    s.delta_norm_qk(a.qkv, state);
    s.delta_gates(a.a, a.b, w[Role::delta_decay], w[Role::delta_dt_bias], a.g, a.beta);
    s.delta_rule(a.qkv, a.g, a.beta, state, a.o);
    s.delta_keep(a.qkv, state);
    s.gated_norm(a.o, a.z, w[Role::delta_norm], c.rms_eps, c.value_heads, a.o);
    s.gemv_residual(w[Role::delta_out], a.o, a.x);
}

void emit_layer(StepList& s, const ModelConfig& c, const LayerWeights& w, const LayerWeights& model,
                const Activations& a, LayerPlace place) {
    s.rmsnorm(a.x, w[Role::attn_norm], c.rms_eps, a.h);
    if (place.kind == LayerKind::full_attention)
        emit_attention(s, c, w, model[Role::rope_freqs], a, place.state);
    else
        emit_delta_net(s, c, w, a, place.state);
    emit_ffn(s, c, w, a);
}

}  // namespace

Architecture qwen35() {
    return {.name = "qwen3.5",
            .model_types = kModelTypes,
            .gguf_name = kGgufName,
            .ignored = kIgnored,
            .may_spill = true,
            .read_config = read_config,
            .tensors = kTensors,
            .declare_slots = declare_slots,
            .emit_layer = emit_layer};
}

}  // namespace hf
