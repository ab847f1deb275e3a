#include "libcore/text/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "libcore/base/error.h"
#include "libcore/text/unicode.h"

namespace hf {
namespace {

using Pieces = std::vector<ChatPiece>;

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

void add_token(Pieces& out, std::string_view token) {
    out.push_back({std::string(token), true});
}
void add_text(Pieces& out, std::string_view text) {
    out.push_back({std::string(text), false});
}

void begin_turn(Pieces& out, std::string_view role) {
    add_token(out, "<|im_start|>");
    add_text(out, fmt::format("{}\n", role));
}

void end_turn(Pieces& out) {
    add_token(out, "<|im_end|>");
    add_text(out, "\n");
}

void add_think_block(Pieces& out, std::string_view reasoning) {
    add_token(out, "<think>");
    add_text(out, fmt::format("\n{}\n", reasoning));
    add_token(out, "</think>");
    add_text(out, "\n\n");
}

std::string_view content_of(const ChatTemplate& t, const ChatMessage& m) {
    return t.trims_content ? trim(m.content) : std::string_view(m.content);
}

void chatml_turns(const ChatTemplate& t, std::span<const ChatMessage> messages, Pieces& out) {
    for (const ChatMessage& m : messages) {
        begin_turn(out, m.role);
        add_text(out, content_of(t, m));
        end_turn(out);
    }
}

/// What an assistant thought and what it answered.
struct Answer {
    std::string_view reasoning, content;
};

/// Reasoning that is not given apart stands in the content, before the first </think>; the answer
/// is what follows the last.
Answer split_answer(const ChatTemplate& t, const ChatMessage& m) {
    constexpr std::string_view kOpen = "<think>", kClose = "</think>";
    const std::string_view content = content_of(t, m);
    if (m.reasoning) return {trim(*m.reasoning), content};
    const size_t close = content.find(kClose);
    if (close == content.npos) return {{}, content};

    std::string_view reasoning = content.substr(0, close);
    if (const size_t open = reasoning.rfind(kOpen); open != reasoning.npos)
        reasoning.remove_prefix(open + kOpen.size());
    std::string_view rest = content.substr(content.rfind(kClose) + kClose.size());
    rest.remove_prefix(std::min(rest.find_first_not_of('\n'), rest.size()));
    return {trim(reasoning), rest};
}

/// The last message of a user that is more than the result of a tool.
size_t last_query(const ChatTemplate& t, std::span<const ChatMessage> messages) {
    for (size_t i = messages.size(); i-- > 0;) {
        const std::string_view content = content_of(t, messages[i]);
        const bool result =
            content.starts_with("<tool_response>") && content.ends_with("</tool_response>");
        if (messages[i].role == "user" && !result) return i;
    }
    throw Error(
        fmt::format("the {} chat template needs a user message, and none of the {} messages is "
                    "one; add it",
                    t.name, messages.size()));
}

void qwen35_turns(const ChatTemplate& t, std::span<const ChatMessage> messages, Pieces& out) {
    const size_t query = last_query(t, messages);
    for (size_t i = 0; i < messages.size(); ++i) {
        const ChatMessage& m = messages[i];
        if (m.role == "system" && i > 0)
            throw Error(
                fmt::format("the {} chat template takes a system message only as the first, and "
                            "message {} is one; move it",
                            t.name, i + 1));
        const Answer answer =
            m.role == "assistant" ? split_answer(t, m) : Answer{{}, content_of(t, m)};
        begin_turn(out, m.role);
        if (m.role == "assistant" && i > query) add_think_block(out, answer.reasoning);
        add_text(out, answer.content);
        end_turn(out);
    }
}

bool is_qwen35(std::string_view text) {
    return has(text, "<|im_start|>") && has(text, "<function=");
}

/// The smaller models think only when asked to. Newer templates of the larger ones say "is
/// undefined or enable_thinking is true", hence the long phrase.
bool is_qwen35_off(std::string_view text) {
    return is_qwen35(text) && has(text, "is defined and enable_thinking is true");
}

/// ChatML and nothing else: no default system message, no tools, no reasoning.
bool is_chatml(std::string_view text) {
    return has(text, "<|im_start|>") && !has(text, "system") && !has(text, "tool") &&
           !has(text, "think");
}

bool is_trimming_chatml(std::string_view text) {
    return is_chatml(text) && (has(text, "|trim") || has(text, "| trim"));
}

constexpr bool kOn = true, kOff = false;

// clang-format off
constexpr ChatTemplate kTemplates[] = {
    // name            recognised by        architecture  trims  thinking      turns
    {"qwen3.5-small",  is_qwen35_off,       "",           true,  kOff,         qwen35_turns},
    {"qwen3.5",        is_qwen35,           "qwen3.5",    true,  kOn,          qwen35_turns},
    {"chatml-trim",    is_trimming_chatml,  "",           true,  std::nullopt, chatml_turns},
    {"chatml",         is_chatml,           "",           false, std::nullopt, chatml_turns},
};
// clang-format on

void check_messages(std::span<const ChatMessage> messages) {
    constexpr std::array<std::string_view, 3> kRoles = {"system", "user", "assistant"};
    if (messages.empty())
        throw Error("a chat needs at least 1 message and has 0; add a user message");
    for (const ChatMessage& m : messages)
        if (std::find(kRoles.begin(), kRoles.end(), m.role) == kRoles.end())
            throw Error(fmt::format("message {} of the chat has the role '{}'; use one of {}",
                                    &m - messages.data() + 1, m.role, fmt::join(kRoles, ", ")));
}

}  // namespace

const ChatTemplate* choose_template(std::string_view label, std::string_view template_text,
                                    std::string_view architecture) {
    for (const ChatTemplate& row : kTemplates) {
        const bool fits = template_text.empty()
                              ? !row.architecture.empty() && row.architecture == architecture
                              : row.recognises(template_text);
        if (fits) return &row;
    }
    if (template_text.empty()) return nullptr;
    throw Error(
        fmt::format("{}: its chat template ({} bytes) is none of those known here (ChatML, "
                    "qwen3.5); give plain text instead of a chat",
                    label, template_text.size()));
}

std::vector<ChatPiece> render_chat(const ChatTemplate& t, std::span<const ChatMessage> messages,
                                   ChatOptions options) {
    check_messages(messages);
    Pieces out;
    t.turns(t, messages, out);
    if (!options.add_generation_prompt) return out;

    begin_turn(out, "assistant");
    const std::optional<bool> thinking = options.thinking ? options.thinking : t.thinking;
    if (thinking && *thinking) {
        add_token(out, "<think>");
        add_text(out, "\n");
    } else if (thinking) {
        add_think_block(out, "");
    }
    return out;
}

std::string text_of(std::span<const ChatPiece> pieces) {
    std::string text;
    for (const ChatPiece& piece : pieces) text += piece.text;
    return text;
}

}  // namespace hf
