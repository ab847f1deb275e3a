// AddedTokens: finds the tokens that stand in the text itself, such as <|im_end|>.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/vocab.h"

namespace hf {

class AddedTokens {
  public:
    /// Those that are looked for before normalisation, or those after it.
    AddedTokens(const Vocab& vocab, bool normalized);

    struct Match {
        size_t at, bytes;  // bytes is 0, and `at` the end of the text, when there is none
        int32_t id;
    };
    /// The first match at or after text[from], the longest of those that begin there, with the
    /// white space that it takes. special  false: those with special = true are plain text
    Match find(std::string_view text, size_t from, bool special) const;

    /// The id of the added token that is spelled so, or -1.
    int32_t id_of(std::string_view text) const;

  private:
    struct Entry {
        std::string text;
        AddedToken token;
    };
    const Entry* longest_at(std::string_view text, size_t at, bool special) const;

    std::vector<Entry> entries_;         // sorted by text, none empty
    std::array<bool, 256> can_begin_{};  // first bytes of entries
};

}  // namespace hf
