// Prompt: feeds many tokens to a session, in pieces that do not depend on who feeds them.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/progress.h"
#include "libcore/exec/session.h"
#include "libcore/text/chat.h"
#include "libcore/text/tokenizer.h"

namespace hf {

/// How many of `left` tokens the next piece takes when `length` came before it: up to the next
/// multiple of Session::kMaxTokens. The grid is absolute, so a checkpoint taken at a grid point is
/// the same however the tokens before it arrived.
uint32_t piece_size(uint32_t length, size_t left);

/// Tokens that a session has room for: what a person wants, else the smaller of what the model was
/// made for and 8192.
uint32_t context_size(std::optional<uint32_t> wanted, uint32_t model_most);

/// What to do about a text of so many tokens that a context does not hold: "shorten it, or ...".
std::string way_to_fit(size_t tokens, const ModelConfig& config);

/// Refuses a prompt that is empty, does not fit, or holds ids outside the vocabulary, before
/// anything runs. One that fills the context to the last token fits; the answer then has one token.
/// Errors  hf::Error(usage), or refused, with both numbers, for one that is too long
void check_prompt(std::span<const int32_t> ids, const Session& session);
/// The same before there is a session: for a context with room for so many tokens.
void check_prompt(std::span<const int32_t> ids, uint32_t room, const ModelConfig& config);

/// Runs the ids piece by piece and commits each. Returns the logits (vocab) behind the last one, or
/// nothing when `interrupt` became true: the pieces until then are committed.
///
/// ids     as check_prompt lets them pass
std::optional<std::vector<float>> feed_prompt(Session& session, std::span<const int32_t> ids,
                                              const Progress& progress,
                                              const std::atomic<bool>& interrupt);

/// Whether a text is white space alone, or nothing: no prompt.
bool is_blank(std::string_view text);

/// What a person wrote, and how it becomes the prompt.
struct PromptText {
    std::string text;
    std::string system;            // empty: no system message
    std::optional<bool> thinking;  // unset: the template's own default
};

/// The ids of a conversation that begins: a system message if there is one, the text as the user's,
/// and the header of the answer. White space alone is an empty prompt.
/// Errors  hf::Error(usage) for an empty prompt; see render_chat and Tokenizer::encode
std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                 const PromptText& prompt);

/// What the prompt of encode_chat already holds of the answer's text: "<think>\n" when it ends
/// inside such a block, so that the "</think>" which the model writes has a beginning; else
/// nothing.
std::string answer_beginning(const Tokenizer& tokenizer, const ChatTemplate& chat,
                             std::optional<bool> thinking);

/// The ids of a text as it is, behind what the tokenizer puts at the beginning of every text.
/// Special tokens are recognised: the person writes the template by hand.
/// Errors  hf::Error(usage) for an empty prompt
std::vector<int32_t> encode_raw(const Tokenizer& tokenizer, std::string_view text);

/// Ids as people write them: "1,2,3", "1 2 3", or one per line.
/// Errors  hf::Error(usage) naming the first word that is no id; between two commas there is one
std::vector<int32_t> parse_ids(std::string_view text);

}  // namespace hf
