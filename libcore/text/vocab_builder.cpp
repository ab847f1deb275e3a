#include "libcore/text/vocab_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "libcore/base/error.h"
#include "libcore/text/unicode.h"

namespace hf {
namespace {

/// Bytes are spelled as printable characters: those that print stand for themselves, the others, in
/// order, are U+0100 and up. The reverse: byte of a character, or -1.
constexpr auto kByteOfCharacter = [] {
    std::array<int16_t, 0x144> table{};
    for (int16_t& byte : table) byte = -1;
    size_t next = 0x100;
    for (int16_t byte = 0; byte < 256; ++byte) {
        const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
        table[prints ? size_t(byte) : next++] = byte;
    }
    return table;
}();

std::optional<std::string> byte_level_bytes(std::string_view text) {
    std::string bytes;
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        if (c.value >= kByteOfCharacter.size() || kByteOfCharacter[c.value] < 0)
            return std::nullopt;
        bytes += char(kByteOfCharacter[c.value]);
        at += c.bytes;
    }
    return bytes;
}

/// <0x0A>
std::optional<std::string> written_byte(std::string_view text) {
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
    uint8_t byte;
    const auto [end, fault] = std::from_chars(&text[3], &text[5], byte, 16);
    if (fault != std::errc() || end != &text[5]) return std::nullopt;
    return std::string(1, char(byte));
}

/// The bytes of a token, or none when it is not spelled as it claims.
std::optional<std::string> bytes_of(const SpelledToken& token) {
    switch (token.spelling) {
        case Spelling::byte_level:
            return byte_level_bytes(token.text);
        case Spelling::spaced:
            return with_spaces(token.text);
        case Spelling::byte:
            return written_byte(token.text);
        case Spelling::plain:
            break;
    }
    return std::string(token.text);
}

}  // namespace

std::string in_quotes(std::string_view text) {
    constexpr size_t kLongest = 60;
    return fmt::format("{:?}{}", text.substr(0, kLongest), text.size() > kLongest ? "..." : "");
}

bool is_written_byte(std::string_view text) {
    return written_byte(text).has_value();
}

void store_tokens(std::string_view where, std::vector<SpelledToken> tokens, bool ignore_merges,
                  Vocab& vocab) {
    if (tokens.empty()) throw Error(fmt::format("{}: the vocabulary has 0 tokens", where));
    std::sort(tokens.begin(), tokens.end(), [](auto& a, auto& b) { return a.id < b.id; });
    vocab.byte_ids.fill(-1);
    for (const SpelledToken& token : tokens) {
        // what there is of starts: one for each id so far, so the id given last ends here
        if (size_t(token.id) < vocab.starts.size())
            throw Error(fmt::format("{}: two tokens have the id {}, one of them {}", where,
                                    token.id, in_quotes(token.text)));
        vocab.starts.resize(size_t(token.id) + 1, uint32_t(vocab.bytes.size()));
        const auto bytes = bytes_of(token);
        if (!bytes && token.spelling == Spelling::byte)
            throw Error(fmt::format("{}: the token {} with the id {} is no byte", where,
                                    in_quotes(token.text), token.id));
        vocab.bytes += bytes ? std::string_view(*bytes) : token.text;

        const bool by_bytes =
            token.spelling == Spelling::byte_level || token.spelling == Spelling::byte;
        if (!bytes || bytes->empty() || token.spelling == Spelling::plain) continue;
        if (by_bytes && bytes->size() == 1) vocab.byte_ids[uint8_t((*bytes)[0])] = token.id;
        if (ignore_merges && token.spelling != Spelling::byte)
            vocab.whole_pieces.push_back(token.id);
        const CodePoint first = code_point_at(*bytes, 0);
        if (token.spelling == Spelling::spaced && first.bytes == bytes->size() &&
            first.state == CodePoint::State::whole)
            vocab.characters.push_back({first.value, token.id});
    }
    vocab.starts.push_back(uint32_t(vocab.bytes.size()));
    std::sort(vocab.whole_pieces.begin(), vocab.whole_pieces.end(),
              [&](int32_t a, int32_t b) { return vocab.token(a) < vocab.token(b); });
    std::sort(vocab.characters.begin(), vocab.characters.end(),
              [](auto& a, auto& b) { return a.value < b.value; });
}

std::optional<std::pair<std::string_view, std::string_view>> split_merge(std::string_view merge) {
    const size_t space = merge.find(' ');
    if (space == merge.npos) return std::nullopt;
    return std::pair(merge.substr(0, space), merge.substr(space + 1));
}

void add_merge(std::string_view where, std::string_view left, std::string_view right,
               const TokenIds& ids, std::vector<Merge>& merges) {
    const auto id_of = [&](std::string_view text) {
        const auto found = ids.find(text);
        if (found == ids.end())
            throw Error(fmt::format("{}[{}]: {} is not in the vocabulary of {} tokens", where,
                                    merges.size(), in_quotes(text), ids.size()));
        return found->second;
    };
    const std::string joined = std::string(left).append(right);
    merges.push_back({id_of(left), id_of(right), id_of(joined), uint32_t(merges.size())});
}

const SplitPattern& split_of_whole_text(const Vocab& vocab) {
    const auto crosses = [&](const Merge& m) {
        return !vocab.token(m.left).ends_with(' ') && vocab.token(m.right).starts_with(' ');
    };
    const bool cuts = std::none_of(vocab.merges.begin(), vocab.merges.end(), crosses) &&
                      vocab.whole_pieces.empty();
    return split_pattern(cuts ? "words" : "whole");
}

}  // namespace hf
