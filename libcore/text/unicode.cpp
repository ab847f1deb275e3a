#include "libcore/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "libcore/base/error.h"

namespace hf {
namespace {

/// A lead byte: length of its sequence (0: none starts so), and the range of its second byte.
struct Lead {
    uint8_t length, low, high;
};

Lead lead_of(uint8_t byte) {
    if (byte < 0x80) return {1, 0, 0};
    if (byte < 0xC2) return {0, 0, 0};
    if (byte < 0xE0) return {2, 0x80, 0xBF};
    if (byte == 0xE0) return {3, 0xA0, 0xBF};  // below: overlong
    if (byte == 0xED) return {3, 0x80, 0x9F};  // above: surrogates
    if (byte < 0xF0) return {3, 0x80, 0xBF};
    if (byte == 0xF0) return {4, 0x90, 0xBF};  // below: overlong
    if (byte < 0xF4) return {4, 0x80, 0xBF};
    if (byte == 0xF4) return {4, 0x80, 0x8F};  // above: beyond U+10FFFF
    return {0, 0, 0};
}

CharClass class_from_category(char32_t c) {
    switch (utf8proc_category(utf8proc_int32_t(c))) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO:
            return CharClass::letter;
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_MC:
        case UTF8PROC_CATEGORY_ME:
            return CharClass::mark;
        case UTF8PROC_CATEGORY_ND:
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_NO:
            return CharClass::number;
        case UTF8PROC_CATEGORY_ZS:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
            return CharClass::space;
        default:
            break;
    }
    if (c == '\n' || c == '\r') return CharClass::newline;
    const bool control_space = c == '\t' || c == 0x0B || c == 0x0C || c == 0x85;
    return control_space ? CharClass::space : CharClass::other;
}

/// True when the character may change under NFC, or change its neighbours: it has a combining class
/// or a decomposition, or it can be the second part of a composition. Those are marks, but for the
/// Hangul vowels and finals and two vowels of Kirat Rai.
bool may_change(char32_t c) {
    if (c < 0x300) return false;
    const bool second = (c >= 0x1161 && c <= 0x11C2) || c == 0x16D63 || c == 0x16D67;
    const utf8proc_property_t* p = utf8proc_get_property(utf8proc_int32_t(c));
    const bool decomposes = p->decomp_type == 0 && p->decomp_seqindex != UINT16_MAX;
    return second || decomposes || p->combining_class != 0 || char_class(c) == CharClass::mark;
}

bool is_nfc_for_sure(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        if (may_change(c.value)) return false;
        at += c.bytes;
    }
    return true;
}

int combining_class(utf8proc_int32_t c) {
    return utf8proc_get_property(c)->combining_class;
}

std::vector<utf8proc_int32_t> decompose(std::string_view text) {
    std::vector<utf8proc_int32_t> out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        std::array<utf8proc_int32_t, 8> parts;  // the longest canonical decomposition has 4
        const auto n = utf8proc_decompose_char(utf8proc_int32_t(c.value), parts.data(),
                                               parts.size(), UTF8PROC_DECOMPOSE, nullptr);
        HF_ASSERT(n > 0 && n <= utf8proc_ssize_t(parts.size()));
        out.insert(out.end(), parts.begin(), parts.begin() + n);
        at += c.bytes;
    }
    return out;
}

/// Sorts by combining class; characters of one class keep their order.
void sort_by_class(std::span<utf8proc_int32_t> run) {
    std::vector<std::array<uint32_t, 3>> keyed;  // class, place, character
    for (const utf8proc_int32_t c : run)
        keyed.push_back({uint32_t(combining_class(c)), uint32_t(keyed.size()), uint32_t(c)});
    std::sort(keyed.begin(), keyed.end());
    for (size_t i = 0; i < run.size(); ++i) run[i] = utf8proc_int32_t(keyed[i][2]);
}

/// Canonical order of each run of combining characters. Not left to utf8proc, whose sort takes
/// quadratic time on long runs.
void order(std::vector<utf8proc_int32_t>& text) {
    const auto is_starter = [](utf8proc_int32_t c) { return combining_class(c) == 0; };
    for (auto run = text.begin(); run != text.end();) {
        run = std::find_if_not(run, text.end(), is_starter);
        const auto end = std::find_if(run, text.end(), is_starter);
        if (end - run > 1) sort_by_class({run, end});
        run = end;
    }
}

/// Appends the composed characters. utf8proc takes U+11A7 for a final of Hangul, which begin one
/// later, and drops it: it composes with nothing, so each part that begins with it is composed
/// alone.
void compose(std::vector<utf8proc_int32_t>& text, std::string& out) {
    for (auto part = text.begin(); part != text.end();) {
        const auto end = std::find(part + 1, text.end(), 0x11A7);
        const auto n = utf8proc_normalize_utf32(
            &*part, end - part, utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        HF_ASSERT(n > 0);
        std::for_each(part, part + n, [&](utf8proc_int32_t c) { append_utf8(out, char32_t(c)); });
        part = end;
    }
}

bool is_python_space(char32_t c) {
    const CharClass k = char_class(c);
    return k == CharClass::space || k == CharClass::newline || (c >= 0x1C && c <= 0x1F);
}

}  // namespace

CodePoint code_point_at(std::string_view text, size_t at) {
    using State = CodePoint::State;
    const uint8_t first = uint8_t(text[at]);
    if (first < 0x80) return {first, 1, State::whole};
    const Lead lead = lead_of(first);
    if (lead.length == 0) return {0xFFFD, 1, State::broken};

    char32_t value = first & (0x7Fu >> lead.length);
    uint8_t low = lead.low, high = lead.high;
    for (uint8_t i = 1; i < lead.length; ++i) {
        if (at + i == text.size()) return {0xFFFD, i, State::cut};
        const uint8_t byte = uint8_t(text[at + i]);
        if (byte < low || byte > high) return {0xFFFD, i, State::broken};
        value = value << 6 | (byte & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    return {value, lead.length, State::whole};
}

void append_utf8(std::string& text, char32_t value) {
    std::array<utf8proc_uint8_t, 4> bytes;
    const auto n = utf8proc_encode_char(utf8proc_int32_t(value), bytes.data());
    text.append(reinterpret_cast<const char*>(bytes.data()), size_t(n));
}

std::string replace_invalid_utf8(std::string_view text) {
    std::string out;
    size_t kept = 0;  // text[0, kept) is in out
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        if (c.state != CodePoint::State::whole) {
            out.append(text, kept, at - kept);
            append_utf8(out, 0xFFFD);
            kept = at + c.bytes;
        }
        at += c.bytes;
    }
    return out.append(text, kept);
}

std::string with_spaces(std::string_view text) {
    constexpr std::string_view kMark = "\u2581";
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const size_t mark = std::min(text.find(kMark, at), text.size());
        out.append(text, at, mark - at);
        if (mark == text.size()) break;
        out += ' ';
        at = mark + kMark.size();
    }
    return out;
}

CharClass char_class(char32_t c) {
    static const auto ascii = [] {
        std::array<CharClass, 128> table;
        for (char32_t i = 0; i < table.size(); ++i) table[i] = class_from_category(i);
        return table;
    }();
    return c < ascii.size() ? ascii[c] : class_from_category(c);
}

std::string nfc(std::string text) {
    if (is_nfc_for_sure(text)) return text;
    std::vector<utf8proc_int32_t> points = decompose(text);
    order(points);
    text.clear();
    compose(points, text);
    return text;
}

std::string_view trim(std::string_view text) {
    size_t begin = text.size(), end = 0;  // of what is not white space
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        if (!is_python_space(c.value)) {
            begin = std::min(begin, at);
            end = at + c.bytes;
        }
        at += c.bytes;
    }
    return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

}  // namespace hf
