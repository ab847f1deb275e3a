#include "libcore/text/pretokenize.h"

#include <array>

#include "libcore/text/unicode.h"

namespace hf {
namespace {

/// A place in valid UTF-8 text and the character there; at the end of the text `end` is true.
struct Cursor {
    std::string_view text;
    size_t at;
    bool end;
    CharClass kind;
    char32_t c;
    size_t next;  // where the next character begins

    Cursor(std::string_view t, size_t place)
        : text(t), at(place), end(place == t.size()), kind(CharClass::other), c(0), next(place) {
        if (end) return;
        const CodePoint point = code_point_at(text, at);
        c = point.value;
        kind = char_class(c);
        next = at + point.bytes;
    }
    void step() { *this = Cursor(text, next); }
};

/// The end of the run of characters from `from` on that `belongs` accepts.
template <class Belongs>
size_t run_end(Cursor from, Belongs belongs) {
    while (!from.end && belongs(from.kind)) from.step();
    return from.at;
}

bool is_white(CharClass k) {
    return k == CharClass::space || k == CharClass::newline;
}
bool is_word(CharClass k) {
    return k == CharClass::letter || k == CharClass::mark;
}
bool is_other(CharClass k) {
    return k == CharClass::other;
}
bool is_newline(CharClass k) {
    return k == CharClass::newline;
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d): the end of the match, or `at`. Case folding lets U+017F be an s.
size_t contraction_end(std::string_view text, size_t at) {
    constexpr std::array<std::string_view, 8> kTails = {"s", "t",  "re", "ve",
                                                        "m", "ll", "d",  "\u017F"};
    if (text[at] != '\'') return at;
    for (const std::string_view tail : kTails) {
        const std::string_view here = text.substr(at + 1, tail.size());
        size_t same = 0;
        while (same < here.size()) {
            const char c = here[same];
            const char lower = c >= 'A' && c <= 'Z' ? char(c + ('a' - 'A')) : c;
            if (lower != tail[same]) break;
            ++same;
        }
        if (same == tail.size()) return at + 1 + tail.size();
    }
    return at;
}

/// \s*[\r\n]+|\s+(?!\S)|\s+ at a white character: up to the last newline of the run, if it has one;
/// else the run, which leaves its last character to what follows when it has more than one.
size_t white_end(Cursor here) {
    const size_t begin = here.at;
    size_t after_newline = begin, last = begin;
    for (; !here.end && is_white(here.kind); here.step()) {
        last = here.at;
        if (is_newline(here.kind)) after_newline = here.next;
    }
    if (after_newline != begin) return after_newline;
    return here.end || last == begin ? here.at : last;
}

/// The alternatives of the pattern from left to right; the table below spells it.
size_t qwen35_piece_end(std::string_view text, size_t at) {
    if (const size_t end = contraction_end(text, at); end != at) return end;
    const Cursor here(text, at);
    const Cursor second(text, here.next);

    const bool may_lead = here.kind != CharClass::newline && here.kind != CharClass::letter &&
                          here.kind != CharClass::number;
    if (may_lead && !second.end && is_word(second.kind)) return run_end(second, is_word);
    if (is_word(here.kind)) return run_end(here, is_word);
    if (here.kind == CharClass::number) return here.next;

    const bool space_leads = here.c == ' ' && !second.end && is_other(second.kind);
    if (space_leads || is_other(here.kind)) {
        const size_t symbols = run_end(space_leads ? second : here, is_other);
        return run_end(Cursor(text, symbols), is_newline);
    }
    return white_end(here);
}

constexpr SplitPattern kPatterns[] = {
    {"qwen35",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
     R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     qwen35_piece_end},
};

}  // namespace

const SplitPattern* find_split_pattern(std::string_view regex) {
    for (const SplitPattern& row : kPatterns)
        if (row.regex == regex) return &row;
    return nullptr;
}

}  // namespace hf
