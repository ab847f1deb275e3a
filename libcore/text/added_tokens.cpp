#include "libcore/text/added_tokens.h"

#include <algorithm>

namespace hf {

AddedTokens::AddedTokens(const Vocab& vocab) {
    for (const AddedToken& token : vocab.added) {
        entries_.push_back({std::string(vocab.token(token.id)), token.id, token.special});
        can_begin_[uint8_t(entries_.back().text[0])] = true;
    }
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.text < b.text; });
}

AddedTokens::Match AddedTokens::find(std::string_view text, size_t from, bool special) const {
    for (size_t at = from; at < text.size(); ++at) {
        if (!can_begin_[uint8_t(text[at])]) continue;
        const Match match = longest_at(text, at, special);
        if (match.bytes > 0) return match;
    }
    return {text.size(), 0, -1};
}

/// Narrows the sorted entries byte by byte to those that begin like text[at...]; an entry that is
/// used up is the first of the rest and a match.
AddedTokens::Match AddedTokens::longest_at(std::string_view text, size_t at, bool special) const {
    Match best{at, 0, -1};
    auto first = entries_.begin(), last = entries_.end();
    for (size_t depth = 0; first != last; ++depth) {
        if (first->text.size() == depth) {
            if (special || !first->special) best = {at, depth, first->id};
            ++first;
        }
        if (at + depth == text.size()) break;
        const auto order = [depth](const Entry& e, char c) {
            return uint8_t(e.text[depth]) < uint8_t(c);
        };
        const char here = text[at + depth];
        first = std::lower_bound(first, last, here, order);
        last = std::partition_point(first, last,
                                    [&](const Entry& e) { return e.text[depth] == here; });
    }
    return best;
}

int32_t AddedTokens::id_of(std::string_view text) const {
    const auto found =
        std::lower_bound(entries_.begin(), entries_.end(), text,
                         [](const Entry& e, std::string_view t) { return e.text < t; });
    return found != entries_.end() && found->text == text ? found->id : -1;
}

}  // namespace hf
