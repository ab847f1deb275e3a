// State: what a session remembers between tokens. One slab holds the key/value cache of the
// attention layers and the recurrent state of the delta-net layers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/codec/codec.h"

namespace hf {

/// How keys and values are stored: a codec and its encoder.
struct KvType {
    std::string_view name;  // as in memory.kv_cache
    const Codec* codec;
    void (*encode)(const float* row, size_t n, std::byte* out);
};

/// f16, f32, q8.
std::span<const KvType> kv_types();
/// Null if there is no type of that name.
const KvType* kv_type_by_name(std::string_view name);

/// How a value head finds its key head: h / (value_heads / key_heads), or h % key_heads (GGUF).
enum class HeadOrder : uint8_t { grouped, tiled };

/// What a model needs to remember; the same for all of its sessions.
struct StateSpec {
    uint32_t kv_layers = 0;
    uint32_t kv_heads = 0, head_dim = 0;

    uint32_t delta_layers = 0;
    uint32_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0, conv_kernel = 0;
    HeadOrder head_order = HeadOrder::grouped;

    uint64_t kv_width() const { return uint64_t(kv_heads) * head_dim; }
    /// Channels of the convolution: q, k (key_heads * key_dim each), then v.
    uint64_t channels() const {
        return 2ull * key_heads * key_dim + uint64_t(value_heads) * value_dim;
    }
};

/// Byte offsets in the slab of one attention layer. The rows of a head lie one after another:
/// whoever attends reads them and nothing else.
struct KvLayer {
    uint64_t k, v;  // (kv_heads, max_seq, head_dim) in the cache's codec
};

/// Byte offsets in the slab of one delta-net layer; all float32.
/// The pending rows belong to tokens that were forwarded last: from them and S any prefix can be
/// made real, S_n = exp(c_n) S + sum over i < n of exp(c_n - c_i) k_i d_i^T with c_i = g_0 + .. +
/// g_i (Yang et al., Gated Delta Networks, arXiv 2412.06464, chunked form). The next pass does it
/// on its way, for it reads S anyway.
struct DeltaLayer {
    uint64_t s;          // (value_heads, key_dim, value_dim)
    uint64_t conv;       // (conv_kernel - 1, channels): the last raw inputs, oldest first
    uint64_t pending_m;  // (max_pending, channels)             raw inputs
    uint64_t pending_k;  // (max_pending, key_heads, key_dim)   normalised keys
    uint64_t pending_d;  // (max_pending, value_heads, value_dim) corrections
    uint64_t pending_g;  // (max_pending, value_heads)          log decays
};

/// The slab. Its first `recurrent_bytes` are S and the convolution of all layers: a checkpoint is a
/// copy of them together with the number of tokens.
struct StateLayout {
    StateSpec spec;
    const KvType* kv = nullptr;
    uint64_t kv_head_bytes = 0;  // keys or values of a token and head
    uint64_t kv_row_bytes = 0;   // of a token
    uint32_t max_seq = 0, max_pending = 0;
    std::vector<KvLayer> kv_layers;
    std::vector<DeltaLayer> delta_layers;
    uint64_t recurrent_bytes = 0;
    uint64_t bytes = 0;

    /// Where the row of a head and token is in a layer's keys or values.
    uint64_t kv_row(uint64_t k_or_v, uint32_t head, uint64_t pos) const {
        return k_or_v + (head * uint64_t(max_seq) + pos) * kv_head_bytes;
    }
};

/// Lays out a slab for sequences up to max_seq tokens, with at most max_pending uncommitted.
/// Errors  hf::Error when the cache's codec does not fit head_dim, or the sizes do not fit 64 bits
StateLayout lay_out_state(const StateSpec& spec, const KvType& kv, uint32_t max_seq,
                          uint32_t max_pending);

}  // namespace hf
