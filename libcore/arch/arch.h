// Architecture: a family of models as a declaration: names, tensors, and the steps of a layer.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "libcore/arch/model_config.h"
#include "libcore/file/model_file.h"
#include "libcore/model/steps.h"

namespace hf {

/// What a tensor is for. Names in files differ; roles do not.
enum class Role : uint8_t {
    embedding,
    final_norm,
    head,
    rope_freqs,     // made at load
    rope_divisors,  // what a GGUF file has instead of rope scaling
    attn_norm,
    attn_q,
    attn_k,
    attn_v,
    attn_o,
    attn_q_norm,
    attn_k_norm,
    attn_q_bias,
    attn_k_bias,
    attn_v_bias,
    delta_qkv,
    delta_z,
    delta_b,
    delta_a,
    delta_conv,
    delta_dt_bias,
    delta_decay,
    delta_norm,
    delta_out,
    ffn_norm,
    ffn_gate,
    ffn_up,
    ffn_down,
    count_,
};

/// Which layers have a tensor.
enum class In : uint8_t { model, every_layer, full_layers, linear_layers };

/// A matrix keeps its bytes and is multiplied from them; a vector becomes float32 at load.
enum class Use : uint8_t { matrix, vector };

/// What turns a stored value of Hugging Face's files into the effective one. (GGUF files store the
/// effective values.)
enum class Change : uint8_t { none, plus_one, neg_exp };

struct TensorRow {
    Role role;
    In in;
    std::string_view hf_name;    // behind the prefix and "layers.N."; empty: never there
    std::string_view gguf_name;  // behind "blk.N."
    Use use;
    Change change;
    Shape (*shape)(const ModelConfig&);  // of the whole tensor; extra dims of size 1 are ignored
    bool is_optional = false;
};

/// Weights by role; null where a layer has none.
struct LayerWeights {
    std::array<const Weight*, size_t(Role::count_)> by_role{};
    const Weight& operator[](Role role) const;
    bool has(Role role) const { return by_role[size_t(role)] != nullptr; }
};

/// The activations that layers share; slots of absent kinds of layers do not exist.
struct Activations {
    Slot x;              // (dim)              residual stream
    Slot h;              // (dim)              normalised copy
    Slot q_gate;         // (2 heads head_dim) per head: query, then gate
    Slot q, attn;        // (heads * head_dim)
    Slot k, v;           // (kv_heads * head_dim)
    Slot m, qkv;         // (conv_channels)    before and behind the convolution
    Slot z, o;           // (value_width)
    Slot b, a, g, beta;  // (value_heads)
    Slot gate, up;       // (ffn_dim)
};

/// A layer's place: its number, and its number among the layers of its kind (for the state).
struct LayerPlace {
    uint32_t layer;
    uint32_t state;
    LayerKind kind;
};

struct Architecture {
    std::string_view name;
    std::span<const std::string_view> model_types;  // "model_type" in config.json
    std::string_view gguf_name;                     // "general.architecture"
    std::span<const std::string_view> ignored;  // prefixes of tensors that are not the text model
    bool may_spill;
    ModelConfig (*read_config)(const ModelFile&);
    std::span<const TensorRow> tensors;
    Activations (*declare_slots)(SlotTable&, const ModelConfig&);
    void (*emit_layer)(StepList&, const ModelConfig&, const LayerWeights&,
                       const LayerWeights& model, const Activations&, LayerPlace);
};

std::span<const Architecture> architectures();

/// The architecture of a model.
/// Errors  hf::Error naming the model_type found and the known ones
const Architecture& architecture_of(const ModelFile& file);

/// Where a model's configuration stands, for messages.
std::string config_label(const ModelFile& file);

/// Ids of tokens that end a text, as config.json or the keys of a GGUF file name them. (A
/// generation config and the vocabulary may name more.) Errors  hf::Error naming file and key
std::vector<int32_t> end_ids(const ModelFile& file);

/// What sessions of such a model must remember.
StateSpec state_spec(const ModelConfig& config);

/// f_i = theta^(-2i / rotary_dim), i below rotary_dim / 2, scaled as the config says; formed in
/// double and rounded once.
std::vector<float> rope_frequencies(const ModelConfig& config);

}  // namespace hf
