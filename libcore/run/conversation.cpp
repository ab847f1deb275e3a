#include "libcore/run/conversation.h"

#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "libcore/base/error.h"

namespace hf {
namespace {

using Messages = std::span<const ChatMessage>;

bool has_system(Messages messages) {
    return !messages.empty() && messages[0].role == "system";
}

/// What this program can go on with: a system message or none, then questions and their answers.
void check_turns(Messages messages) {
    for (size_t i = 0, turn = 0; i < messages.size(); ++i) {
        const std::string_view role = messages[i].role;
        if (i == 0 && role == "system") continue;
        const std::string_view expected = turn++ % 2 == 0 ? "user" : "assistant";
        if (role != expected || !messages[i].tool_calls.empty())
            throw Error(
                fmt::format("message {} is not a plain message with the role {}; a chat is "
                            "(system), user, assistant, user, assistant, ...",
                            i + 1, expected));
    }
    if (!messages.empty() && messages.back().role == "user")
        throw Error(
            fmt::format("the last of {} messages is the user's; its answer is missing, leave it "
                        "out",
                        messages.size()));
}

/// The id of a mark that is text for a reader, too.
std::optional<int32_t> readable_id(const Tokenizer& tokenizer, std::string_view mark) {
    const std::optional<int32_t> id = tokenizer.id_of(mark);
    return id && !tokenizer.is_special(*id) ? id : std::nullopt;
}

}  // namespace

void check_chat_tokens(const Tokenizer& tokenizer, const ChatTemplate& chat,
                       std::optional<bool> thinking) {
    const ChatMessage turns[] = {
        {"system", "x", {}}, {"user", "x", {}}, {"assistant", "x", {}}, {"user", "x", {}}};
    tokenizer.encode(render_chat(chat, turns, {/*add_generation_prompt=*/true, thinking}));
}

Conversation::Conversation(Session& session, const Tokenizer& tokenizer, const ChatTemplate& chat,
                           ConversationOptions options)
    : session_(session),
      tokenizer_(tokenizer),
      chat_(chat),
      options_(std::move(options)),
      think_open_(readable_id(tokenizer, "<think>")),
      think_close_(readable_id(tokenizer, "</think>")),
      cache_(session) {}

std::vector<int32_t> Conversation::encode(Messages messages, bool for_answer) const {
    return tokenizer_.encode(render_chat(chat_, messages, {for_answer, options_.thinking}));
}

bool Conversation::ends_in_thinking(std::span<const int32_t> header) const {
    for (const int32_t id : header | std::views::reverse) {
        if (id == think_close_) return false;
        if (id == think_open_) return think_close_.has_value();
    }
    return false;
}

Turn Conversation::answer(std::vector<ChatMessage> messages, const TurnWatch& watch) {
    const std::vector<int32_t> prompt = encode(messages, /*for_answer=*/true);
    if (prompt.size() > context_size())
        throw Error(fmt::format("the conversation has {} tokens with this message, but the context "
                                "holds {}; begin anew, or {}",
                                prompt.size(), context_size(),
                                way_to_fit(prompt.size(), session_.model().config)),
                    Fault::refused);
    // The next turn's prompt is this one up to here at least: its template may change the answer.
    const auto header = uint32_t(encode(messages, /*for_answer=*/false).size());

    Turn turn;
    turn.reused = cache_.rewind(prompt);
    const auto reused = std::span(prompt).first(turn.reused);
    const auto rest = std::span(prompt).subspan(turn.reused);
    SamplingOptions sampling = options_.sampling;
    sampling.seed += answers_;
    if (!sampling.is_greedy()) turn.seed = sampling.seed;
    Sampler sampler(sampling, options_.known);
    sampler.see_prompt(reused);
    ThinkingSplitter splitter(ends_in_thinking(std::span(prompt).subspan(header)), watch.on_answer);
    turn.generation = generate(
        session_, rest, sampler, &tokenizer_, options_.generate,
        [&](const GeneratedToken& token) { splitter.push(token.text); },
        [&](size_t done, size_t total) {
            cache_.keep(header);
            if (watch.on_progress) watch.on_progress(done, total);
        },
        watch.interrupt);
    splitter.flush();

    if (turn.generation.ids.empty()) {
        cache_.keep(session_.length());  // the same question need not begin anew
        return turn;
    }
    ++answers_;
    messages.push_back({"assistant", splitter.answer(), splitter.thinking()});
    messages_ = std::move(messages);
    return turn;
}

Turn Conversation::ask(std::string_view text, const TurnWatch& watch) {
    if (is_blank(text)) throw Error("the message is empty; write one", Fault::usage);
    std::vector<ChatMessage> messages = messages_;
    messages.push_back({"user", std::string(text), {}});
    return answer(std::move(messages), watch);
}

Turn Conversation::retry(const TurnWatch& watch) {
    if (messages_.empty() || messages_.back().role != "assistant")
        throw Error("there is no answer to be tried again; ask something first", Fault::usage);
    return answer({messages_.begin(), messages_.end() - 1}, watch);
}

void Conversation::reset() {
    messages_.resize(has_system(messages_) ? 1 : 0);
}

std::string_view Conversation::system() const {
    return has_system(messages_) ? std::string_view(messages_[0].content) : "";
}

void Conversation::set_system(std::string_view text) {
    if (has_system(messages_)) messages_.erase(messages_.begin());
    if (!text.empty()) messages_.insert(messages_.begin(), {"system", std::string(text), {}});
}

void Conversation::set_messages(std::vector<ChatMessage> messages) {
    check_turns(messages);
    const bool has_turns = messages.size() > (has_system(messages) ? 1u : 0u);
    const size_t tokens = has_turns ? encode(messages, /*for_answer=*/true).size() : 0;
    if (tokens > context_size())
        throw Error(
            fmt::format("the conversation has {} tokens, but the context holds {}; {}", tokens,
                        context_size(), way_to_fit(tokens, session_.model().config)),
            Fault::refused);
    messages_ = std::move(messages);
}

}  // namespace hf
