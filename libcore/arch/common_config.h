// What the config.json files of all architectures have in common.
#pragma once

#include "libcore/arch/config_fields.h"
#include "libcore/arch/model_config.h"

namespace hf {

/// What an architecture's class assumes for keys that are absent; nothing: the key must be there.
struct ConfigDefaults {
    std::optional<uint32_t> vocab, dim, ffn_dim, n_layers, n_heads, n_kv_heads, head_dim;
    std::optional<uint32_t> max_positions;
    double rope_theta = 10000;
    double rotary_share = 1;  // of head_dim
};

/// Sizes, norms, end ids, and the attention's heads and rope. Without a default, n_kv_heads is
/// n_heads and head_dim is dim / n_heads. Leaves `layers` to the caller.
/// Errors  hf::Error naming file and key for what is missing, out of bounds, does not go together,
/// or
///         asks for something that is not built: biases, another activation, another rope
ModelConfig read_common(const ConfigFields& fields, const ConfigDefaults& defaults);

}  // namespace hf
