// UTF-8 as files must spell it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hf {

/// Bytes of the character that begins at text[at]; 0 when none does: cut short, overlong, half of a
/// surrogate pair, or beyond U+10FFFF. Source: RFC 3629.
inline size_t utf8_length(std::string_view text, size_t at) {
    constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // by length; below: overlong
    const unsigned lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) return 1;
    const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC0 || lead >= 0xF8 || text.size() - at < length) return 0;
    uint32_t code = lead & (0x7Fu >> length);
    for (size_t i = 1; i < length; ++i) {
        const unsigned c = static_cast<unsigned char>(text[at + i]);
        if ((c & 0xC0) != 0x80) return 0;
        code = code << 6 | (c & 0x3F);
    }
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    return code < kLeast[length] || code > 0x10FFFF || is_surrogate ? 0 : length;
}

}  // namespace hf
