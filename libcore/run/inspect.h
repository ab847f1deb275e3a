// Inspection: what is in a model's files, and what hf-run would make of it. From headers alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/arch/arch.h"
#include "libcore/file/model_file.h"

namespace hf {

/// All tensors of one format.
struct FormatFacts {
    std::string name;              // the codec's, or as the container spells a type without one
    const Codec* codec = nullptr;  // null: recognised, but no format of this build
    uint32_t tensors = 0;
    uint64_t weights = 0, bytes = 0;  // bytes: with sidecars that lie in the tensor itself

    double bits_per_weight() const { return weights ? 8.0 * double(bytes) / double(weights) : 0; }
};

struct TokenizerFacts {
    std::string kind;      // "tokenizer.json", or what a GGUF file calls it: "gpt2 qwen35"
    uint32_t entries = 0;  // ids are below this
    uint32_t special = 0;  // of these: not shown in answers, as the end of a turn
};

/// What a refusal takes away. Each leaves what follows it in this list.
enum class Stops : uint8_t {
    load,  // everything: the model does not load
    text,  // text; ids are accepted
    chat,  // the chat template; plain text and ids are accepted
};
std::string_view name_of(Stops stops);

struct Obstacle {
    Stops stops;
    std::string sentence;  // as hf-run would say it
};

struct InspectOptions {
    const KvType* kv = nullptr;       // how keys and values would be stored
    std::optional<uint32_t> max_seq;  // tokens wanted; unset: as context_size() has it
};

/// Views and pointers live as long as the file.
struct Inspection {
    const ModelFile* file = nullptr;
    uint64_t file_bytes = 0;             // of the mapped files: headers, weights, padding
    const Architecture* arch = nullptr;  // null: none that this build knows
    std::optional<ModelConfig> config;   // empty: refused
    uint64_t parameters = 0;    // weights that the model uses, a shared table once; 0 if unknown
    std::vector<bool> is_used;  // (file->tensors) by the model; all, where config is empty
    uint32_t context = 0;       // tokens that hf-run would make room for
    uint64_t state_bytes = 0;   // of a session with so many
    std::vector<FormatFacts> formats;  // most bytes first
    std::optional<TokenizerFacts> tokenizer;
    std::string_view chat_template;  // the built-in one that it is; empty: none, or refused
    std::vector<int32_t> stop_ids;
    std::vector<Obstacle> refusals;

    /// Whether nothing stops it; see Stops.
    bool allows(Stops stops) const;
};

/// Looks at everything that does not need the weights themselves. Whatever is wrong becomes a
/// refusal, and the rest is looked at all the same: configuration, each kind of tensor (of a kind
/// that many layers have, the first one that is wrong), cache, tokenizer, chat template. Tensors
/// that belong to nothing are looked for once all kinds are as they should be.
Inspection inspect(const ModelFile& file, const InspectOptions& options);

/// Instruction levels at which a format has a dot of its own; at others the next lower one serves.
std::vector<cpu::Level> dot_levels(const Codec& codec, cpu::Activations activations);

}  // namespace hf
