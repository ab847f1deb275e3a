#include "libcore/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

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

Tokenizer Tokenizer::from_vocab(std::string_view label, const VocabData& data) {
    return Tokenizer(read_vocab_data(label, data));
}

Tokenizer::Tokenizer(Vocab vocab)
    : vocab_(std::move(vocab)),
      table_(vocab_.merges),
      raw_added_(vocab_, /*normalized=*/false),
      normalized_added_(vocab_, /*normalized=*/true),
      special_(vocab_.starts.size()) {
    for (const AddedToken& token : vocab_.added) special_[size_t(token.id)] = token.special;
}

struct Tokenizer::Encoding {
    explicit Encoding(const Tokenizer& t) : bpe(t.vocab_, t.table_, ids) {}
    std::vector<int32_t> ids;
    BpeEncoder bpe;
    bool at_start = true;  // no text and no added token came before
};

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
    Encoding out(*this);
    const auto &before = vocab_.before, &after = vocab_.after;
    if (options.add_special) out.ids.insert(out.ids.end(), before.begin(), before.end());
    encode_span(text, options.parse_special, out);
    if (options.add_special) out.ids.insert(out.ids.end(), after.begin(), after.end());
    return std::move(out.ids);
}

std::vector<int32_t> Tokenizer::encode(std::span<const ChatPiece> chat) const {
    Encoding out(*this);
    std::string text;
    for (const ChatPiece& piece : chat) {
        if (!piece.is_token) {
            text += piece.text;
            continue;
        }
        encode_span(text, false, out);
        text.clear();
        out.ids.push_back(added_id(piece.text));
        out.at_start = false;
        if (out.ids.back() < 0)
            throw Error(
                fmt::format("the chat needs the token '{}', which this model's vocabulary of {} "
                            "tokens does not have; give it plain text with --raw",
                            piece.text, known_ids()));
    }
    encode_span(text, false, out);
    return std::move(out.ids);
}

/// Text with added tokens in it.
void Tokenizer::encode_span(std::string_view raw, bool special, Encoding& out) const {
    check_size(raw.size());
    const std::string text = replace_invalid_utf8(raw);
    for (size_t at = 0; at < text.size(); out.at_start = false) {
        const AddedTokens::Match match = raw_added_.find(text, at, special);
        encode_plain(std::string_view(text).substr(at, match.at - at), special, out);
        if (match.bytes > 0) out.ids.push_back(match.id);
        at = match.at + match.bytes;
    }
}

/// Text without those that are looked for in raw text.
void Tokenizer::encode_plain(std::string_view raw, bool special, Encoding& out) const {
    if (raw.empty()) return;
    const std::string text = normal(raw, out.at_start);
    for (size_t at = 0; at < text.size();) {
        const AddedTokens::Match match = normalized_added_.find(text, at, special);
        encode_pieces(std::string_view(text).substr(at, match.at - at), out);
        if (match.bytes > 0) out.ids.push_back(match.id);
        at = match.at + match.bytes;
    }
}

void Tokenizer::encode_pieces(std::string_view text, Encoding& out) const {
    for (size_t at = 0; at < text.size();) {
        const size_t end = vocab_.split->piece_end(text, at);
        out.bpe.encode(text.substr(at, end - at));
        at = end;
    }
}

std::string Tokenizer::normal(std::string_view raw, bool is_first) const {
    std::string text = vocab_.nfc ? nfc(std::string(raw)) : std::string(raw);
    if (vocab_.characters.empty()) return text;  // bytes stay what they are
    text = with_spaces(text);
    const bool is_missing = !text.starts_with(' ');
    const SpacePrefix rule = vocab_.space_prefix;
    if (rule == SpacePrefix::each || (rule == SpacePrefix::each_missing && is_missing) ||
        (rule == SpacePrefix::first_missing && is_missing && is_first))
        text.insert(text.begin(), ' ');
    return text;
}

int32_t Tokenizer::added_id(std::string_view text) const {
    return std::max(raw_added_.id_of(text), normalized_added_.id_of(text));
}

std::string_view Tokenizer::bytes(int32_t id) const {
    return id >= 0 && id < known_ids() ? vocab_.token(id) : std::string_view();
}

bool Tokenizer::is_special(int32_t id) const {
    return id >= 0 && id < known_ids() && special_[size_t(id)];
}

std::optional<int32_t> Tokenizer::id_of(std::string_view literal) const {
    if (const int32_t id = added_id(literal); id >= 0) return id;
    for (int32_t id = 0; id < known_ids(); ++id)
        if (!literal.empty() && vocab_.token(id) == literal) return id;
    return std::nullopt;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
    std::string raw;
    for (const int32_t id : ids)
        if (!skip_special || !is_special(id)) raw += bytes(id);
    if (vocab_.drops_first_space && raw.starts_with(' ')) raw.erase(0, 1);
    return replace_invalid_utf8(raw);
}

}  // namespace hf
