// Text from outside, made fit to be shown.
#pragma once

#include <string>
#include <string_view>

#include "libcore/base/utf8.h"

namespace hf {

/// A text as a terminal may show it: every control character becomes '?', and so does every byte
/// that is no UTF-8. Names out of files can hold bytes that move a cursor or end a string.
/// (Control characters: C0, DEL, and C1, which some terminals take in UTF-8 too.)
inline std::string printable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const size_t length = utf8_length(text, at);
        const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
        const bool is_c1 = length == 2 && byte(0) == 0xC2 && byte(1) < 0xA0;
        if (length == 0 || byte(0) < ' ' || byte(0) == 0x7F || is_c1)
            out += '?';
        else
            out.append(text, at, length);
        at += length > 0 ? length : 1;
    }
    return out;
}

}  // namespace hf
