// Split patterns: where a text is cut into pieces before byte pairs are merged.
#pragma once

#include <cstddef>
#include <string_view>

namespace hf {

/// One way to cut a text, with the matcher written for it.
struct SplitPattern {
    std::string_view name;
    std::string_view
        regex;  // exactly as tokenizer.json spells it; empty: it is asked for otherwise
    /// End of the piece that starts at text[at]; text is valid UTF-8, at < text.size(), at < end.
    size_t (*piece_end)(std::string_view text, size_t at);
};

/// The row with that regular expression, or null: patterns are recognised, not interpreted.
const SplitPattern* find_split_pattern(std::string_view regex);

/// The row of that name, one of
///   qwen2, qwen35, llama3
///   gpt2     ByteLevel with use_regex
///   smollm   single digits, and gpt2 between them
///   spaces   before each space (Metaspace with split)
///   words    before each space that follows something else
///   whole    not at all
const SplitPattern& split_pattern(std::string_view name);

}  // namespace hf
