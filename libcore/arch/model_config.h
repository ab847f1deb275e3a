// ModelConfig: the numbers of a model, in one form for all architectures and containers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/model/state.h"
#include "libcore/model/steps.h"

namespace hf {

enum class LayerKind : uint8_t { full_attention, linear_attention };

/// Longer contexts by slower turns, as Llama 3.1 does it. A factor of 1 changes nothing.
/// Source  rope_type "llama3" of Hugging Face's configurations
struct RopeScaling {
    double factor = 1, low_freq_factor = 1, high_freq_factor = 4;
    double original_positions = 8192;
};

struct ModelConfig {
    std::string model_type;  // as the file spells it
    uint32_t vocab = 0;      // rows of the embedding; padding rows included
    uint32_t dim = 0, ffn_dim = 0, n_layers = 0;
    uint32_t extra_blocks = 0;  // of a GGUF file, behind the layers: a draft head, not run
    uint32_t max_positions = 0;
    float rms_eps = 0;
    std::vector<LayerKind> layers;  // (n_layers)

    // full attention
    uint32_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
    uint32_t rotary_dim = 0;  // turned dims of a head, even
    double rope_theta = 0;
    RopeScaling rope_scaling;
    RopePairs rope_pairs = RopePairs::half_split;

    // linear attention (gated delta net)
    uint32_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0, conv_kernel = 0;
    HeadOrder head_order = HeadOrder::grouped;

    bool tied_embeddings = false;  // the head is the embedding table: decided by the tensors

    uint32_t count(LayerKind kind) const;
    uint64_t attention_width() const { return uint64_t(n_heads) * head_dim; }
    uint64_t kv_width() const { return uint64_t(n_kv_heads) * head_dim; }
    uint64_t key_width() const { return uint64_t(key_heads) * key_dim; }
    uint64_t value_width() const { return uint64_t(value_heads) * value_dim; }
    uint64_t conv_channels() const { return 2 * key_width() + value_width(); }
};

}  // namespace hf
