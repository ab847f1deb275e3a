#include "libcore/file/json.h"

#include <algorithm>

#include "libcore/base/utf8.h"
#include "libcore/file/message.h"

namespace hf {
namespace {

constexpr int kMostDepth = 64;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_surrogate(uint32_t code) {
    return code >= 0xD800 && code < 0xE000;
}

void append_utf8(std::string& out, uint32_t code) {
    const auto add = [&](uint32_t byte) { out += char(byte); };
    if (code < 0x80) return add(code);
    if (code < 0x800) {
        add(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            add(0xE0 | code >> 12);
        } else {
            add(0xF0 | code >> 18);
            add(0x80 | (code >> 12 & 0x3F));
        }
        add(0x80 | (code >> 6 & 0x3F));
    }
    add(0x80 | (code & 0x3F));
}

}  // namespace

void JsonReader::fail(std::string_view what) const {
    fail_file(where_, "unusable JSON at byte {}: {}", at_, what);
}

/// The next byte that is not white space; 0 at the end (a zero byte in the text fits nowhere).
char JsonReader::next_visible() {
    at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonReader::take_if(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
}

void JsonReader::take(char c, std::string_view what) {
    next_visible();
    if (!take_if(c)) fail(fmt::format("expected {}", what));
}

void JsonReader::take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) fail(fmt::format("expected {}", word));
    at_ += word.size();
}

JsonReader::Kind JsonReader::peek() {
    const char c = next_visible();
    switch (c) {
        case '{':
            return Kind::object;
        case '[':
            return Kind::array;
        case '"':
            return Kind::string;
        case 't':
        case 'f':
            return Kind::boolean;
        case 'n':
            return Kind::null;
    }
    if (c == '-' || is_digit(c)) return Kind::number;
    fail(at_ < text_.size() ? "expected a value" : "the text ends where a value should be");
}

/// Steps to the next member or element; false after the closing bracket.
bool JsonReader::open_or_continue(bool first, char close) {
    if (next_visible() == close) {
        ++at_;
        return false;
    }
    if (!first) take(',', fmt::format("',' or '{}'", close));
    return true;
}

void JsonReader::object(const std::function<void(const std::string&)>& member) {
    take('{', "'{'");
    if (++depth_ > kMostDepth) fail(fmt::format("nested deeper than {} levels", kMostDepth));
    for (bool first = true; open_or_continue(first, '}'); first = false) {
        const std::string key = string();
        take(':', "':'");
        member(key);
    }
    --depth_;
}

void JsonReader::array(const std::function<void()>& element) {
    take('[', "'['");
    if (++depth_ > kMostDepth) fail(fmt::format("nested deeper than {} levels", kMostDepth));
    for (bool first = true; open_or_continue(first, ']'); first = false) element();
    --depth_;
}

std::string JsonReader::string() {
    take('"', "a string");
    std::string out;
    out.reserve(string_bytes());
    while (at_ < text_.size()) {
        const unsigned char c = static_cast<unsigned char>(text_[at_]);
        if (c < 0x20) fail("a control character inside a string");
        if (c >= 0x80) {
            utf8_into(out);
            continue;
        }
        ++at_;
        if (c == '"') return out;
        if (c == '\\')
            escape_into(out);
        else
            out += char(c);
    }
    fail("a string without its closing quote");
}

/// Bytes up to the closing quote: what the decoded string needs at most.
size_t JsonReader::string_bytes() const {
    size_t end = at_;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    return std::min(end, text_.size()) - at_;
}

void JsonReader::escape_into(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (const size_t i = kNames.find(c); i != kNames.npos) {
        ++at_;
        out += kValues[i];
        return;
    }
    if (!take_if('u')) fail("an unknown escape");
    uint32_t code = hex4();
    if (code >= 0xD800 && code < 0xDC00 && take_if('\\') && take_if('u')) {
        const uint32_t low = hex4();
        if (low < 0xDC00 || low >= 0xE000) fail("half of a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (is_surrogate(code)) fail("half of a surrogate pair");
    append_utf8(out, code);
}

uint32_t JsonReader::hex4() {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
        const char c = at_ < text_.size() ? text_[at_] : '\0';
        const char lower = char(c | 0x20);
        if (is_digit(c))
            code = code << 4 | uint32_t(c - '0');
        else if (lower >= 'a' && lower <= 'f')
            code = code << 4 | uint32_t(lower - 'a' + 10);
        else
            fail("expected four hexadecimal digits");
    }
    return code;
}

void JsonReader::utf8_into(std::string& out) {
    const size_t length = utf8_length(text_, at_);
    if (length == 0) fail("bytes that are not UTF-8");
    out.append(text_, at_, length);
    at_ += length;
}

void JsonReader::take_digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == begin) fail("expected a digit");
}

std::string_view JsonReader::number() {
    next_visible();
    const size_t begin = at_;
    take_if('-');
    if (!take_if('0')) take_digits();
    if (take_if('.')) take_digits();
    if (take_if('e') || take_if('E')) {
        if (!take_if('+')) take_if('-');
        take_digits();
    }
    return text_.substr(begin, at_ - begin);
}

void JsonReader::skip() {
    switch (peek()) {
        case Kind::object:
            return object([this](const std::string&) { skip(); });
        case Kind::array:
            return array([this] { skip(); });
        case Kind::string:
            return void(string());
        case Kind::number:
            return void(number());
        case Kind::boolean:
            return take_word(text_[at_] == 't' ? "true" : "false");
        case Kind::null:
            return take_word("null");
    }
}

std::string_view JsonReader::raw() {
    next_visible();
    const size_t begin = at_;
    skip();
    return text_.substr(begin, at_ - begin);
}

void JsonReader::end() {
    next_visible();
    if (at_ < text_.size()) fail("text behind the end");
}

}  // namespace hf
