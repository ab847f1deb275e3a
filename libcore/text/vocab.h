// Vocab: what a byte-pair tokenizer is made of, whichever file it came from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/pretokenize.h"

namespace hf {

/// The largest id; a larger one means a damaged file.
constexpr int32_t kMaxTokenId = (1 << 24) - 1;

/// Two neighbours that become one token. Ids of tokens that exist.
struct Merge {
    int32_t left, right, merged;
    uint32_t rank;  // smallest first; of equal ones the leftmost pair first
};

/// A character that is a token by itself.
struct Character {
    char32_t value;
    int32_t id;
};

/// Which stretches of text between added tokens get a space in front (SentencePiece).
enum class SpacePrefix : uint8_t {
    none,
    each,           // every one
    each_missing,   // every one that does not begin with a space
    first_missing,  // the one at the very beginning, if it does not begin with a space
};

/// A token that is found in the text itself, before it is cut into pieces.
struct AddedToken {
    int32_t id;
    bool special;             // may be hidden when decoding; not looked for in untrusted text
    bool normalized = false;  // is looked for after normalisation, where no other was found
    bool takes_space_before = false, takes_space_behind = false;  // white space is part of it
};

/// Filled and checked by a reader (tokenizer_json.h, vocab_data.h); a Tokenizer takes it as it is.
struct Vocab {
    /// All tokens in id order, as they are printed: token id is bytes[starts[id], starts[id + 1]).
    /// An empty one does not exist.
    std::string bytes;
    std::vector<uint32_t> starts;

    std::array<int32_t, 256> byte_ids{};  // the token of each single byte, or -1
    std::vector<Merge> merges;
    std::vector<AddedToken> added;  // none empty, no text twice

    /// Sorted by value. If there are any, pieces begin as characters, and as bytes only where a
    /// character has no token (SentencePiece); else all begin as bytes.
    std::vector<Character> characters;

    /// Tokens that a piece becomes without merging, if it has their text (ignore_merges); sorted by
    /// their bytes, empty when there is no such rule.
    std::vector<int32_t> whole_pieces;

    std::vector<int32_t> before, after;  // what add_special puts around a text
    bool nfc = false;                    // text is normalised first
    SpacePrefix space_prefix = SpacePrefix::none;
    bool drops_first_space = false;       // decoded text loses the space that encoding put there
    const SplitPattern* split = nullptr;  // never null in a finished vocabulary

    int32_t size() const { return int32_t(starts.size()) - 1; }
    std::string_view token(int32_t id) const {
        const size_t i = size_t(id);
        return std::string_view(bytes).substr(starts[i], starts[i + 1] - starts[i]);
    }
};

}  // namespace hf
