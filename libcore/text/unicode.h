// UTF-8, character classes and normalisation form C, as far as tokenizers need them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hf {

/// What stands at one place of a text that claims to be UTF-8.
struct CodePoint {
    enum class State : uint8_t { whole, broken, cut };
    char32_t value;  // U+FFFD unless whole
    uint8_t bytes;   // 1 .. 4: its length, or that of the longest part a character can begin with
    State state;     // cut: the text ends inside it, more bytes could still complete it
};

/// Reads the code point at text[at]; at < text.size(). Overlong forms, surrogates and values beyond
/// U+10FFFF are broken.
///
/// Source  The Unicode Standard, section 3.9: table 3-7, U+FFFD substitution of maximal subparts
CodePoint code_point_at(std::string_view text, size_t at);

/// Appends a code point, which is not a surrogate and at most U+10FFFF.
void append_utf8(std::string& text, char32_t value);

/// The text with one U+FFFD for each maximal invalid part: always valid UTF-8.
std::string replace_invalid_utf8(std::string_view text);

/// The text with a space for each U+2581, SentencePiece's spelling of spaces.
std::string with_spaces(std::string_view text);

/// What split patterns tell apart: \p{L}, \p{M}, \p{N}, \s and the rest; newline is \r or \n, which
/// \s contains too. Versions of utf8proc differ only in characters newly assigned.
enum class CharClass : uint8_t { letter, mark, number, newline, space, other };
CharClass char_class(char32_t c);

/// Normalisation form C (canonical decomposition, ordering, composition) of valid UTF-8.
///
/// Cost    O(n log n) at worst; one pass over text that certainly does not change
/// Source  Unicode Standard Annex 15
std::string nfc(std::string text);

/// Without white space at both ends, as Python's str.strip() and so Jinja's trim see white space.
std::string_view trim(std::string_view text);

}  // namespace hf
