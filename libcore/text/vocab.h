// Vocab: what a byte-level BPE tokenizer is made of, whichever file it came from.
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
};

/// A token that is found in the text itself, before it is cut into pieces.
struct AddedToken {
    int32_t id;
    bool special;  // may be hidden when decoding, and is not looked for in untrusted text
};

/// Filled and checked by a reader (tokenizer_json.h); a Tokenizer takes it as it is.
struct Vocab {
    /// All tokens in id order, as they are printed: token id is bytes[starts[id], starts[id + 1]).
    /// An empty one does not exist.
    std::string bytes;
    std::vector<uint32_t> starts;

    std::array<int32_t, 256> byte_ids{};  // the token of each single byte, or -1
    std::vector<Merge> merges;            // best first
    std::vector<AddedToken> added;        // none empty

    /// Tokens that a piece becomes without merging, if it has their text (ignore_merges); sorted by
    /// their bytes, empty when there is no such rule.
    std::vector<int32_t> whole_pieces;

    std::vector<int32_t> before, after;   // what add_special puts around a text
    bool nfc = false;                     // text is normalised first
    const SplitPattern* split = nullptr;  // never null in a finished vocabulary

    int32_t size() const { return int32_t(starts.size()) - 1; }
    std::string_view token(int32_t id) const {
        const size_t i = size_t(id);
        return std::string_view(bytes).substr(starts[i], starts[i + 1] - starts[i]);
    }
};

}  // namespace hf
