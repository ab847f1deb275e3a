// Tokenizer: text to token ids and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/added_tokens.h"
#include "libcore/text/bpe.h"
#include "libcore/text/vocab.h"
#include "libcore/text/vocab_data.h"

namespace hf {

struct EncodeOptions {
    bool parse_special = true;  // false, for untrusted text: special tokens in it are plain text
    bool add_special = false;   // put around the text what the tokenizer says (begin of text)
};

/// A part of a rendered chat. A token is one added token of the vocabulary, by its text. Special
/// tokens are never looked for inside text, so that no message can forge the end of a turn.
struct ChatPiece {
    std::string text;
    bool is_token = false;
};

/// Byte-level BPE, or SentencePiece's. Does not change after construction: threads may share one.
///
/// Encoding, in this order: invalid UTF-8 becomes U+FFFD; added tokens are taken out of the raw
/// text, the first and longest; what lies between is normalised (NFC, if the vocabulary says so),
/// cut into pieces by the split pattern, and each piece is merged from its bytes. A byte that has
/// no token is left out, as the tokenizers library does. Added tokens with special = false
/// (<think>) are found in any text.
/// SentencePiece: a space is put in front of what lies between, U+2581 is a space, and pieces are
/// merged from their characters.
class Tokenizer {
  public:
    /// From the text of a tokenizer.json. label: names the source in errors. See tokenizer_json.h.
    static Tokenizer from_json(std::string_view label, std::string_view json);
    /// From the keys of a GGUF file. See vocab_data.h.
    static Tokenizer from_vocab(std::string_view label, const VocabData& data);

    explicit Tokenizer(Vocab vocab);

    /// Errors  hf::Error for texts of 2 GiB and more
    std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

    /// A rendered chat. Neighbouring texts are joined before they are cut into pieces.
    /// Errors  hf::Error when the vocabulary lacks a token that the chat needs
    std::vector<int32_t> encode(std::span<const ChatPiece> chat) const;

    /// What a token prints: raw bytes, which may end inside a character. Empty for unknown ids.
    /// Valid as long as the tokenizer.
    std::string_view bytes(int32_t id) const;

    /// Ids are below this; the rows of an embedding from here on are padding, as are gaps below.
    int32_t known_ids() const { return vocab_.size(); }
    bool is_known(int32_t id) const { return !bytes(id).empty(); }
    bool is_special(int32_t id) const;

    /// The token with exactly this text; an added one is preferred. Looks at every token.
    std::optional<int32_t> id_of(std::string_view literal) const;

    /// Whether decoding leaves out a space at the very beginning, since encoding put it there.
    bool drops_first_space() const { return vocab_.drops_first_space; }

    /// The text of all tokens, one U+FFFD for each part that is not UTF-8. Unknown ids print
    /// nothing.
    std::string decode(std::span<const int32_t> ids, bool skip_special) const;

  private:
    struct Encoding;  // what is being written
    void encode_span(std::string_view text, bool special, Encoding& out) const;
    void encode_plain(std::string_view text, bool special, Encoding& out) const;
    void encode_pieces(std::string_view text, Encoding& out) const;
    std::string normal(std::string_view text, bool is_first) const;
    int32_t added_id(std::string_view text) const;

    Vocab vocab_;
    MergeTable table_;
    AddedTokens raw_added_, normalized_added_;
    std::vector<bool> special_;  // by id
};

}  // namespace hf
