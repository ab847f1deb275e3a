#include "libcore/text/stream_decoder.h"

#include <utility>

#include "libcore/text/unicode.h"

namespace hf {
namespace {

/// The first two bytes of a surrogate (ED A0..BF) at the very end. They can never become a
/// character, but wait for their third: so does CPython's incremental decoder, the model for this
/// one.
bool is_half_surrogate(std::string_view text, size_t at) {
    return at + 2 == text.size() && uint8_t(text[at]) == 0xED && uint8_t(text[at + 1]) >= 0xA0 &&
           uint8_t(text[at + 1]) <= 0xBF;
}

/// Where the bytes begin that are to be held back.
size_t printable(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        if (c.state == CodePoint::State::cut || is_half_surrogate(text, at)) return at;
        at += c.bytes;
    }
    return text.size();
}

}  // namespace

std::string StreamDecoder::push(int32_t id) {
    if (skip_special_ && tokenizer_.is_special(id)) return {};
    std::string_view bytes = tokenizer_.bytes(id);
    if (!bytes.empty() && std::exchange(drops_space_, false) && bytes[0] == ' ')
        bytes.remove_prefix(1);
    held_ += bytes;
    const size_t end = printable(held_);
    std::string text = replace_invalid_utf8(std::string_view(held_).substr(0, end));
    held_.erase(0, end);
    return text;
}

std::string StreamDecoder::flush() {
    drops_space_ = tokenizer_.drops_first_space();
    return replace_invalid_utf8(std::exchange(held_, {}));
}

}  // namespace hf
