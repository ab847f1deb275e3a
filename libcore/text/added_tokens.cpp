#include "libcore/text/added_tokens.h"

#include <algorithm>

#include "libcore/text/unicode.h"

namespace hf {

namespace {

bool is_white(char32_t c) {
    const CharClass k = char_class(c);
    return k == CharClass::space || k == CharClass::newline;
}

/// Where the white space in front of text[at] begins, not before text[from].
size_t white_before(std::string_view text, size_t from, size_t at) {
    while (at > from) {
        size_t last = at - 1;
        while (last > from && (uint8_t(text[last]) & 0xC0) == 0x80) --last;
        if (!is_white(code_point_at(text, last).value)) break;
        at = last;
    }
    return at;
}

size_t white_behind(std::string_view text, size_t at) {
    while (at < text.size() && is_white(code_point_at(text, at).value))
        at += code_point_at(text, at).bytes;
    return at;
}

}  // namespace

AddedTokens::AddedTokens(const Vocab& vocab, bool normalized) {
    for (const AddedToken& token : vocab.added) {
        if (token.normalized != normalized) continue;
        const std::string text(vocab.token(token.id));
        entries_.push_back({normalized && vocab.nfc ? nfc(text) : text, token});
        can_begin_[uint8_t(entries_.back().text[0])] = true;
    }
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.text < b.text; });
}

AddedTokens::Match AddedTokens::find(std::string_view text, size_t from, bool special) const {
    for (size_t at = from; at < text.size(); ++at) {
        if (!can_begin_[uint8_t(text[at])]) continue;
        const Entry* entry = longest_at(text, at, special);
        if (!entry) continue;
        const AddedToken& token = entry->token;
        size_t end = at + entry->text.size();
        if (token.takes_space_before) at = white_before(text, from, at);
        if (token.takes_space_behind) end = white_behind(text, end);
        return {at, end - at, token.id};
    }
    return {text.size(), 0, -1};
}

/// Narrows the sorted entries byte by byte to those that begin like text[at...]; an entry that is
/// used up is the first of the rest and a match.
const AddedTokens::Entry* AddedTokens::longest_at(std::string_view text, size_t at,
                                                  bool special) const {
    const Entry* best = nullptr;
    auto first = entries_.begin(), last = entries_.end();
    for (size_t depth = 0; first != last; ++depth) {
        for (; first != last && first->text.size() == depth; ++first)
            if (special || !first->token.special) best = &*first;
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
    return found != entries_.end() && found->text == text ? found->token.id : -1;
}

}  // namespace hf
