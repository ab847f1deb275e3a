// What all readers of vocabularies share: from tokens as files spell them to a Vocab.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libcore/text/vocab.h"

namespace hf {

/// How a file writes the bytes that a token prints.
enum class Spelling : uint8_t {
    plain,       // as they are
    byte_level,  // each byte as a printable character (GPT-2), plain if other characters are there
    spaced,      // U+2581 for each space (SentencePiece)
    byte,        // <0x0A>: this one byte
};

struct SpelledToken {
    std::string_view text;  // a view into the file
    int32_t id;
    Spelling spelling;
};

using TokenIds = std::unordered_map<std::string_view, int32_t>;

/// A text of a file as it may stand in an error: in quotes, escaped, shortened.
std::string in_quotes(std::string_view text);

/// <0x0A> and the like.
bool is_written_byte(std::string_view text);

/// Fills bytes, starts, byte_ids and characters, and whole_pieces under ignore_merges. A token
/// without text does not exist.
///
/// tokens  ids of 0 to kMaxTokenId; texts together below 4 GiB
/// Errors  hf::Error that begins with `where`: no tokens, an id twice, <0x..> that is no byte
void store_tokens(std::string_view where, std::vector<SpelledToken> tokens, bool ignore_merges,
                  Vocab& vocab);

/// "a b" in two, at the first space.
std::optional<std::pair<std::string_view, std::string_view>> split_merge(std::string_view merge);

/// Appends to merges the next one, whose rank is its place in the list.
/// Errors  hf::Error that begins with "where[place]": one of the three tokens does not exist
void add_merge(std::string_view where, std::string_view left, std::string_view right,
               const TokenIds& ids, std::vector<Merge>& merges);

/// How a text that has no pre-tokenizer may be cut all the same: into words, if no merge puts a
/// space behind something else, so that none can cross the cut; words that come again are then
/// copied.
const SplitPattern& split_of_whole_text(const Vocab& vocab);

}  // namespace hf
