// Conversation: messages that take turns, and a session that is fed only what it does not hold yet.
//
// Each turn renders the whole conversation with the chat template, which may write past turns in
// another way than they came (thinking left out), and encodes it. From the last point that the
// session still holds of it (prompt_cache.h) the rest is fed: for a model with recurrent state
// at most 63 tokens more than the answer before, as it is now rendered, and the new text. The
// answer has the ids that it would have if everything was fed from the start.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/exec/session.h"
#include "libcore/run/generate.h"
#include "libcore/run/prompt_cache.h"
#include "libcore/run/sampler.h"
#include "libcore/run/thinking.h"
#include "libcore/text/chat.h"
#include "libcore/text/tokenizer.h"

namespace hf {

struct ConversationOptions {
    SamplingOptions sampling;      // answer n of a conversation, from 0, is drawn with seed + n
    std::vector<bool> known;       // (vocab) ids that may be picked; empty: all
    GenerateOptions generate;      // of one answer
    std::optional<bool> thinking;  // unset: the template's own default
};

/// What a person watches while an answer is made. All may be empty but the last.
struct TurnWatch {
    OnAnswer on_answer;
    Progress on_progress;  // of the tokens that are fed
    const std::atomic<bool>& interrupt;
};

struct Turn {
    Generation generation;         // its prompt phase counts the tokens that were fed
    uint32_t reused = 0;           // tokens of the prompt that the session held already
    std::optional<uint64_t> seed;  // unset: nothing is drawn
};

/// What every turn of a conversation needs, asked before there is one.
/// Errors  hf::Error naming a token of the template that the vocabulary lacks
void check_chat_tokens(const Tokenizer& tokenizer, const ChatTemplate& chat,
                       std::optional<bool> thinking);

class Conversation {
  public:
    /// All outlive it. The session is fresh, and nobody else feeds it.
    Conversation(Session& session, const Tokenizer& tokenizer, const ChatTemplate& chat,
                 ConversationOptions options);

    /// Adds the message and its answer. An answer that was cut short (interrupted, or at a limit)
    /// stays as far as it came: what the model said and what it knows of it are the same. If it
    /// was interrupted before its first token, the message is not kept either.
    ///
    /// Errors  hf::Error, the conversation and the session as before: an empty message (usage);
    ///         more tokens than the context holds (refused); see render_chat, Tokenizer::encode.
    ///         See generate for what else can go wrong; the message is not kept then
    Turn ask(std::string_view text, const TurnWatch& watch);

    /// Answers the last message anew, with the next seed. The old answer is gone, unless the new
    /// one is interrupted before its first token.
    /// Errors  hf::Error(usage) when nothing was asked; as ask()
    Turn retry(const TurnWatch& watch);

    /// Begins anew; the system message stays.
    void reset();

    /// The system message from the next turn on; empty: none. The past is kept and fed again.
    void set_system(std::string_view system);
    std::string_view system() const;

    /// Takes a conversation from elsewhere in place of this one.
    /// Errors  hf::Error, and nothing is changed: messages that are not (system)? (user assistant)*
    ///         or hold tool calls; as ask() for what does not fit
    void set_messages(std::vector<ChatMessage> messages);
    std::span<const ChatMessage> messages() const { return messages_; }

    /// Tokens that the session holds, of as many as fit.
    uint32_t context_used() const { return session_.length(); }
    uint32_t context_size() const { return session_.length() + session_.room(); }

  private:
    Session& session_;
    const Tokenizer& tokenizer_;
    const ChatTemplate& chat_;
    ConversationOptions options_;
    std::optional<int32_t> think_open_, think_close_;  // unset: not told apart
    PromptCache cache_;
    std::vector<ChatMessage> messages_;
    uint64_t answers_ = 0;  // made since the start, retries included

    std::vector<int32_t> encode(std::span<const ChatMessage> messages, bool for_answer) const;
    bool ends_in_thinking(std::span<const int32_t> header) const;
    Turn answer(std::vector<ChatMessage> messages, const TurnWatch& watch);
};

}  // namespace hf
