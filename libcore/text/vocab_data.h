// VocabData: a vocabulary as GGUF's keys tokenizer.ggml.* give it, and how it becomes a Vocab.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/vocab.h"

namespace hf {

/// The values of the keys of the same names; whoever reads the file fills it. Views and spans point
/// into the file.
struct VocabData {
    std::string model;                     // "gpt2": byte-level BPE; "llama": SentencePiece
    std::string pre;                       // which pre-tokenizer, of gpt2
    std::vector<std::string_view> tokens;  // by id
    std::vector<int32_t> token_types;      // one a token, or empty: all normal
    std::vector<float> scores;             // one a token, of llama
    std::vector<std::string_view> merges;  // "left right", best first, of gpt2
    std::optional<int32_t> bos_token_id, eos_token_id;
    std::optional<bool> add_bos_token, add_eos_token, add_space_prefix;
};

/// Reads both models.
///
/// Token types: 1 normal; 2 unknown and 3 control are special added tokens; 4 user defined are
/// added tokens; 5 unused do not exist; 6 byte. What the keys do not say goes by pre: NFC for qwen2
/// and qwen35, ignore_merges for llama-bpe. Begin of text is added unless the keys say otherwise
/// for llama-bpe and llama. A normal token <like this> that no merge makes is taken as user
/// defined: older files had no type for <think>.
///
/// label   names the source in errors
/// Errors  hf::Error with label and key: an unknown model, pre or type; lists of different lengths;
///         texts listed twice; merges of tokens that do not exist; ids that are none; scores that
///         are not finite; of llama, no token for one of the 256 bytes
/// Memory  16 bytes per merge; of llama, at most 16 for each byte of the tokens
/// Source  the ggml project's description of GGUF, section Tokenizer
Vocab read_vocab_data(std::string_view label, const VocabData& data);

}  // namespace hf
