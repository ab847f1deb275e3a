// Split patterns: where a text is cut into pieces before byte pairs are merged.
#pragma once

#include <cstddef>
#include <string_view>

namespace hf {

/// One pattern that a tokenizer.json may ask for, with the matcher written for it.
struct SplitPattern {
    std::string_view name;   // as GGUF files call it
    std::string_view regex;  // exactly as tokenizer.json spells it
    /// End of the piece that starts at text[at]; text is valid UTF-8, at < text.size(), at < end.
    size_t (*piece_end)(std::string_view text, size_t at);
};

/// The row with that regular expression, or null: patterns are recognised, not interpreted.
const SplitPattern* find_split_pattern(std::string_view regex);

}  // namespace hf
