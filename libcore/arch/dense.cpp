// Qwen2, Qwen3 and Llama: full attention in every layer. They differ in biases (Qwen2), norms of
// q and k (Qwen3) and rope scaling (Llama 3.1 and later); all norms are plain weights.
// Source: the Qwen2, Qwen3 and Llama classes of Hugging Face transformers.
#include "libcore/arch/architectures.h"
#include "libcore/arch/common_config.h"
#include "libcore/arch/emit_ffn.h"

namespace hf {
namespace {

using C = ModelConfig;

// clang-format off
constexpr TensorRow kEmbedding = {Role::embedding,   In::model,       "embed_tokens.weight",             "token_embd.weight",         Use::matrix, Change::none, [](const C& c) { return Shape{c.vocab, c.dim}; }};
constexpr TensorRow kFinalNorm = {Role::final_norm,  In::model,       "norm.weight",                     "output_norm.weight",        Use::vector, Change::none, [](const C& c) { return Shape{1, c.dim}; }};
constexpr TensorRow kHead      = {Role::head,        In::model,       "lm_head.weight",                  "output.weight",             Use::matrix, Change::none, [](const C& c) { return Shape{c.vocab, c.dim}; }, true};
constexpr TensorRow kDivisors  = {Role::rope_divisors, In::model,     "",                                "rope_freqs.weight",         Use::vector, Change::none, [](const C& c) { return Shape{1, c.rotary_dim / 2}; }, true};
constexpr TensorRow kAttnNorm  = {Role::attn_norm,   In::every_layer, "input_layernorm.weight",          "attn_norm.weight",          Use::vector, Change::none, [](const C& c) { return Shape{1, c.dim}; }};
constexpr TensorRow kQ         = {Role::attn_q,      In::every_layer, "self_attn.q_proj.weight",         "attn_q.weight",             Use::matrix, Change::none, [](const C& c) { return Shape{c.attention_width(), c.dim}; }};
constexpr TensorRow kK         = {Role::attn_k,      In::every_layer, "self_attn.k_proj.weight",         "attn_k.weight",             Use::matrix, Change::none, [](const C& c) { return Shape{c.kv_width(), c.dim}; }};
constexpr TensorRow kV         = {Role::attn_v,      In::every_layer, "self_attn.v_proj.weight",         "attn_v.weight",             Use::matrix, Change::none, [](const C& c) { return Shape{c.kv_width(), c.dim}; }};
constexpr TensorRow kO         = {Role::attn_o,      In::every_layer, "self_attn.o_proj.weight",         "attn_output.weight",        Use::matrix, Change::none, [](const C& c) { return Shape{c.dim, c.attention_width()}; }};
constexpr TensorRow kQBias     = {Role::attn_q_bias, In::every_layer, "self_attn.q_proj.bias",           "attn_q.bias",               Use::vector, Change::none, [](const C& c) { return Shape{1, c.attention_width()}; }};
constexpr TensorRow kKBias     = {Role::attn_k_bias, In::every_layer, "self_attn.k_proj.bias",           "attn_k.bias",               Use::vector, Change::none, [](const C& c) { return Shape{1, c.kv_width()}; }};
constexpr TensorRow kVBias     = {Role::attn_v_bias, In::every_layer, "self_attn.v_proj.bias",           "attn_v.bias",               Use::vector, Change::none, [](const C& c) { return Shape{1, c.kv_width()}; }};
constexpr TensorRow kQNorm     = {Role::attn_q_norm, In::every_layer, "self_attn.q_norm.weight",         "attn_q_norm.weight",        Use::vector, Change::none, [](const C& c) { return Shape{1, c.head_dim}; }};
constexpr TensorRow kKNorm     = {Role::attn_k_norm, In::every_layer, "self_attn.k_norm.weight",         "attn_k_norm.weight",        Use::vector, Change::none, [](const C& c) { return Shape{1, c.head_dim}; }};
constexpr TensorRow kFfnNorm   = {Role::ffn_norm,    In::every_layer, "post_attention_layernorm.weight", "ffn_norm.weight",           Use::vector, Change::none, [](const C& c) { return Shape{1, c.dim}; }};
constexpr TensorRow kGate      = {Role::ffn_gate,    In::every_layer, "mlp.gate_proj.weight",            "ffn_gate.weight",           Use::matrix, Change::none, [](const C& c) { return Shape{c.ffn_dim, c.dim}; }};
constexpr TensorRow kUp        = {Role::ffn_up,      In::every_layer, "mlp.up_proj.weight",              "ffn_up.weight",             Use::matrix, Change::none, [](const C& c) { return Shape{c.ffn_dim, c.dim}; }};
constexpr TensorRow kDown      = {Role::ffn_down,    In::every_layer, "mlp.down_proj.weight",            "ffn_down.weight",           Use::matrix, Change::none, [](const C& c) { return Shape{c.dim, c.ffn_dim}; }};
// clang-format on

constexpr TensorRow kLlama[] = {kEmbedding, kFinalNorm, kHead,    kDivisors, kAttnNorm, kQ,   kK,
                                kV,         kO,         kFfnNorm, kGate,     kUp,       kDown};
constexpr TensorRow kQwen2[] = {kEmbedding, kFinalNorm, kHead,  kAttnNorm, kQ,
                                kQBias,     kK,         kKBias, kV,        kVBias,
                                kO,         kFfnNorm,   kGate,  kUp,       kDown};
constexpr TensorRow kQwen3[] = {kEmbedding, kFinalNorm, kHead,  kAttnNorm, kQ,    kK,  kV,
                                kO,         kQNorm,     kKNorm, kFfnNorm,  kGate, kUp, kDown};

constexpr std::string_view kLlamaTypes[] = {"llama"};
constexpr std::string_view kQwen2Types[] = {"qwen2"};
constexpr std::string_view kQwen3Types[] = {"qwen3"};

ModelConfig read_config(const ModelFile& file) {
    ModelConfig c;
    if (file.naming == Naming::gguf) {
        c = read_common_gguf(file, file.gguf.text("general.architecture", ""));
        // The converter of Llama interleaves the rows of q and k for adjacent pairs.
        if (c.model_type == "llama") c.rope_pairs = RopePairs::adjacent;
    } else {
        c = read_common(ConfigFields(config_label(file), file.config), {});
    }
    c.layers.assign(c.n_layers, LayerKind::full_attention);
    return c;
}

Activations declare_slots(SlotTable& t, const ModelConfig& c) {
    Activations a;
    a.x = t.add("x", c.dim);
    a.h = t.add("h", c.dim);
    a.gate = t.add("ffn_gate", c.ffn_dim);
    a.up = t.add("ffn_up", c.ffn_dim);
    a.q = t.add("q", c.attention_width());
    a.k = t.add("k", c.kv_width());
    a.v = t.add("v", c.kv_width());
    a.attn = t.add("attn", c.attention_width());
    return a;
}

void emit_layer(StepList& s, const ModelConfig& c, const LayerWeights& w, const LayerWeights& model,
                const Activations& a, LayerPlace place) {
    const Weight& freqs = model[Role::rope_freqs];
    s.rmsnorm(a.x, w[Role::attn_norm], c.rms_eps, a.h);
    s.gemv(w[Role::attn_q], a.h, a.q);
    s.gemv(w[Role::attn_k], a.h, a.k);
    s.gemv(w[Role::attn_v], a.h, a.v);
    if (w.has(Role::attn_q_bias)) s.add_bias(w[Role::attn_q_bias], a.q);
    if (w.has(Role::attn_k_bias)) s.add_bias(w[Role::attn_k_bias], a.k);
    if (w.has(Role::attn_v_bias)) s.add_bias(w[Role::attn_v_bias], a.v);
    if (w.has(Role::attn_q_norm)) {
        s.head_norm(a.q, w[Role::attn_q_norm], c.rms_eps, c.n_heads, c.head_dim, a.q);
        s.head_norm(a.k, w[Role::attn_k_norm], c.rms_eps, c.n_kv_heads, c.head_dim, a.k);
    }
    s.rope(a.q, freqs, c.n_heads, c.rope_pairs);
    s.rope(a.k, freqs, c.n_kv_heads, c.rope_pairs);
    s.kv_write(a.k, a.v, place.state);
    s.attend(a.q, c.n_heads, place.state, a.attn);
    s.gemv_residual(w[Role::attn_o], a.attn, a.x);
    emit_ffn(s, c, w, a);
}

Architecture dense(std::string_view name, std::span<const std::string_view> types,
                   std::span<const TensorRow> tensors) {
    return {.name = name,
            .model_types = types,
            .gguf_name = name,
            .ignored = {},
            .may_spill = true,
            .read_config = read_config,
            .tensors = tensors,
            .declare_slots = declare_slots,
            .emit_layer = emit_layer};
}

}  // namespace

Architecture llama() {
    return dense("llama", kLlamaTypes, kLlama);
}
Architecture qwen2() {
    return dense("qwen2", kQwen2Types, kQwen2);
}
Architecture qwen3() {
    return dense("qwen3", kQwen3Types, kQwen3);
}

}  // namespace hf
