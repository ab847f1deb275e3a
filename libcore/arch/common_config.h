// What the config.json files of all architectures have in common.
#pragma once

#include <string_view>
#include <vector>

#include "libcore/arch/config_fields.h"
#include "libcore/arch/model_config.h"
#include "libcore/file/model_file.h"

namespace hf {

/// What an architecture's class assumes for keys that are absent; nothing: the key must be there.
struct ConfigDefaults {
    std::optional<uint32_t> vocab, dim, ffn_dim, n_layers, n_heads, n_kv_heads, head_dim;
    std::optional<uint32_t> max_positions;
    double rope_theta = 10000;
    double rotary_share = 1;  // of head_dim
};

/// Sizes, norms, and the attention's heads and rope. Without a default, n_kv_heads is
/// n_heads and head_dim is dim / n_heads. Leaves `layers` to the caller.
/// Errors  hf::Error naming file and key for what is missing, out of bounds, does not go together,
/// or
///         asks for something that is not built: biases, another activation, another rope
ModelConfig read_common(const ConfigFields& fields, const ConfigDefaults& defaults);

/// The same from the keys of a GGUF file, which begin with the architecture's name there
/// ("llama."). Keys without a default in the format must be there. The vocabulary is counted by the
/// rows of the embedding; blocks behind the last layer (a draft head) are counted in extra_blocks.
ModelConfig read_common_gguf(const ModelFile& file, std::string_view arch);

}  // namespace hf
