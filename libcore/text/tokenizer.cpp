#include "libcore/text/tokenizer.h"

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/text/tokenizer_json.h"
#include "libcore/text/unicode.h"

namespace hf {
namespace {

/// Places in a piece are 32-bit numbers, and a byte may become three (U+FFFD).
constexpr size_t kMaxText = size_t(1) << 31;

void check_size(size_t bytes) {
    if (bytes >= kMaxText)
        throw Error(
            fmt::format("a text of {} bytes is too long to be tokenized, the limit is {}; "
                        "split it",
                        bytes, kMaxText - 1));
}

}  // namespace

Tokenizer Tokenizer::from_json(std::string_view label, std::string_view json) {
    return Tokenizer(read_tokenizer_json(label, json));
}

Tokenizer::Tokenizer(Vocab vocab)
    : vocab_(std::move(vocab)),
      table_(vocab_.merges),
      added_(vocab_),
      special_(vocab_.starts.size()) {
    for (const AddedToken& token : vocab_.added) special_[size_t(token.id)] = token.special;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
    std::vector<int32_t> ids;
    BpeEncoder bpe(vocab_, table_, ids);
    if (options.add_special) ids.insert(ids.end(), vocab_.before.begin(), vocab_.before.end());
    encode_span(text, options.parse_special, bpe, ids);
    if (options.add_special) ids.insert(ids.end(), vocab_.after.begin(), vocab_.after.end());
    return ids;
}

std::vector<int32_t> Tokenizer::encode(std::span<const ChatPiece> chat) const {
    std::vector<int32_t> ids;
    BpeEncoder bpe(vocab_, table_, ids);
    std::string text;
    for (const ChatPiece& piece : chat) {
        if (!piece.is_token) {
            text += piece.text;
            continue;
        }
        encode_span(text, false, bpe, ids);
        text.clear();
        ids.push_back(added_.id_of(piece.text));
        if (ids.back() < 0)
            throw Error(
                fmt::format("the chat needs the token '{}', which this model's vocabulary of {} "
                            "tokens does not have; turn thinking or the chat template off",
                            piece.text, known_ids()));
    }
    encode_span(text, false, bpe, ids);
    return ids;
}

void Tokenizer::encode_span(std::string_view raw, bool special, BpeEncoder& bpe,
                            std::vector<int32_t>& ids) const {
    check_size(raw.size());
    const std::string text = replace_invalid_utf8(raw);
    for (size_t at = 0; at < text.size();) {
        const AddedTokens::Match match = added_.find(text, at, special);
        encode_plain(std::string_view(text).substr(at, match.at - at), bpe);
        if (match.bytes > 0) ids.push_back(match.id);
        at = match.at + match.bytes;
    }
}

void Tokenizer::encode_plain(std::string_view raw, BpeEncoder& bpe) const {
    const std::string text = vocab_.nfc ? nfc(std::string(raw)) : std::string(raw);
    for (size_t at = 0; at < text.size();) {
        const size_t end = vocab_.split->piece_end(text, at);
        bpe.encode(std::string_view(text).substr(at, end - at));
        at = end;
    }
}

std::string_view Tokenizer::bytes(int32_t id) const {
    return id >= 0 && id < known_ids() ? vocab_.token(id) : std::string_view();
}

bool Tokenizer::is_special(int32_t id) const {
    return id >= 0 && id < known_ids() && special_[size_t(id)];
}

std::optional<int32_t> Tokenizer::id_of(std::string_view literal) const {
    if (const int32_t id = added_.id_of(literal); id >= 0) return id;
    for (int32_t id = 0; id < known_ids(); ++id)
        if (!literal.empty() && vocab_.token(id) == literal) return id;
    return std::nullopt;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
    std::string raw;
    for (const int32_t id : ids)
        if (!skip_special || !is_special(id)) raw += bytes(id);
    return replace_invalid_utf8(raw);
}

}  // namespace hf
