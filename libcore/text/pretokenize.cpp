#include "libcore/text/pretokenize.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "libcore/base/error.h"
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
bool is_letter(CharClass k) {
    return k == CharClass::letter;
}
bool is_letter_or_mark(CharClass k) {
    return k == CharClass::letter || k == CharClass::mark;
}
bool is_number(CharClass k) {
    return k == CharClass::number;
}
bool is_newline(CharClass k) {
    return k == CharClass::newline;
}
bool is_symbol(CharClass k) {
    return k == CharClass::other;
}
bool is_symbol_or_mark(CharClass k) {
    return k == CharClass::other || k == CharClass::mark;
}

/// 's|'t|'re|'ve|'m|'ll|'d at text[at]: the end of the match, or `at`. Any case, on request; case
/// folding lets U+017F be an s.
size_t contraction_end(std::string_view text, size_t at, bool any_case) {
    constexpr std::array<std::string_view, 8> kTails = {"s", "t",  "re", "ve",
                                                        "m", "ll", "d",  "\u017F"};
    if (text[at] != '\'') return at;
    for (const std::string_view tail : std::span(kTails).first(any_case ? 8 : 7)) {
        const std::string_view here = text.substr(at + 1, tail.size());
        size_t same = 0;
        while (same < here.size()) {
            const char c = here[same];
            const bool upper = any_case && c >= 'A' && c <= 'Z';
            if ((upper ? char(c + ('a' - 'A')) : c) != tail[same]) break;
            ++same;
        }
        if (same == tail.size()) return at + 1 + tail.size();
    }
    return at;
}

/// White characters from `here` on.
struct WhiteRun {
    size_t last;           // where the last one begins
    size_t after_newline;  // behind the last newline, or where the run begins
    Cursor behind;         // what follows
};
WhiteRun white_run(Cursor here) {
    WhiteRun run{here.at, here.at, here};
    for (; !run.behind.end && is_white(run.behind.kind); run.behind.step()) {
        run.last = run.behind.at;
        if (is_newline(run.behind.kind)) run.after_newline = run.behind.next;
    }
    return run;
}

/// \s+(?!\S)|\s+: the run, which leaves its last character to what follows when it has more than
/// one.
size_t white_end(size_t begin, const WhiteRun& run, bool something_follows) {
    return something_follows && run.last != begin ? run.last : run.behind.at;
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?WORD+|\p{N}{1,DIGITS}|
/// ?[^\s WORD \p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ with WORD letters, or letters and marks: the
/// alternatives from left to right.
template <bool marks_in_words, int digits>
size_t words_piece_end(std::string_view text, size_t at) {
    constexpr auto is_word = marks_in_words ? is_letter_or_mark : is_letter;
    constexpr auto is_other = marks_in_words ? is_symbol : is_symbol_or_mark;
    if (const size_t end = contraction_end(text, at, true); end != at) return end;
    const Cursor here(text, at);
    const Cursor second(text, here.next);

    const bool may_lead = !is_newline(here.kind) && !is_letter(here.kind) && !is_number(here.kind);
    if (may_lead && !second.end && is_word(second.kind)) return run_end(second, is_word);
    if (is_word(here.kind)) return run_end(here, is_word);
    if (is_number(here.kind)) {
        Cursor end = second;
        for (int i = 1; i < digits && !end.end && is_number(end.kind); ++i) end.step();
        return end.at;
    }
    const bool space_leads = here.c == ' ' && !second.end && is_other(second.kind);
    if (space_leads || is_other(here.kind)) {
        const size_t symbols = run_end(space_leads ? second : here, is_other);
        return run_end(Cursor(text, symbols), is_newline);
    }
    const WhiteRun run = white_run(here);
    if (run.after_newline != at) return run.after_newline;
    return white_end(at, run, !run.behind.end);
}

/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+. With numbers apart,
/// each one is a piece, and a text ends before it.
template <bool numbers_apart>
size_t gpt2_piece_end(std::string_view text, size_t at) {
    if (const size_t end = contraction_end(text, at, false); end != at) return end;
    const Cursor here(text, at);
    if (numbers_apart && is_number(here.kind)) return here.next;

    const Cursor second(text, here.next);
    const bool space_leads = here.c == ' ' && !second.end && !is_white(second.kind) &&
                             !(numbers_apart && is_number(second.kind));
    const Cursor first = space_leads ? second : here;
    for (const auto belongs : {is_letter, is_number, is_symbol_or_mark})
        if (belongs(first.kind)) return run_end(first, belongs);

    const WhiteRun run = white_run(here);
    const bool ends = run.behind.end || (numbers_apart && is_number(run.behind.kind));
    return white_end(at, run, !ends);
}

size_t space_piece_end(std::string_view text, size_t at) {
    return std::min(text.find(' ', at + 1), text.size());
}

size_t word_piece_end(std::string_view text, size_t at) {
    size_t end = space_piece_end(text, at);
    while (end < text.size() && text[end - 1] == ' ') end = space_piece_end(text, end);
    return end;
}

size_t whole_piece_end(std::string_view text, size_t) {
    return text.size();
}

constexpr SplitPattern kPatterns[] = {
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     words_piece_end<false, 1>},
    {"qwen35",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
     R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     words_piece_end<true, 1>},
    {"llama3",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     words_piece_end<false, 3>},
    {"gpt2", "", gpt2_piece_end<false>},
    {"smollm", "", gpt2_piece_end<true>},
    {"spaces", "", space_piece_end},
    {"words", "", word_piece_end},
    {"whole", "", whole_piece_end},
};

}  // namespace

const SplitPattern* find_split_pattern(std::string_view regex) {
    for (const SplitPattern& row : kPatterns)
        if (!row.regex.empty() && row.regex == regex) return &row;
    return nullptr;
}

const SplitPattern& split_pattern(std::string_view name) {
    const auto row = std::find_if(std::begin(kPatterns), std::end(kPatterns),
                                  [&](const SplitPattern& p) { return p.name == name; });
    HF_ASSERT(row != std::end(kPatterns));
    return *row;
}

}  // namespace hf
