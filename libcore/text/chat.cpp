#include "libcore/text/chat.h"

#include <fmt/format.h>

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/text/chat_answers.h"
#include "libcore/text/chat_tools.h"

namespace hf {
namespace {

using Pieces = std::vector<ChatPiece>;
using Messages = std::span<const ChatMessage>;

void add_token(std::string_view token, Pieces& out) {
    if (!token.empty()) out.push_back({std::string(token), true});
}
void add_text(std::string_view text, Pieces& out) {
    out.push_back({std::string(text), false});
}

void begin_turn(const TurnMarks& marks, std::string_view role, Pieces& out) {
    add_token(marks.begin, out);
    add_text(role, out);
    add_token(marks.role_end, out);
    add_text(marks.behind_role, out);
}
void end_turn(const TurnMarks& marks, Pieces& out) {
    add_token(marks.end, out);
    add_text(marks.behind_end, out);
}
void add_turn(const TurnMarks& marks, std::string_view role, std::string_view text, Pieces& out) {
    begin_turn(marks, role, out);
    add_text(text, out);
    end_turn(marks, out);
}

void check_messages(const ChatTemplate& t, Messages messages, const ChatOptions& options) {
    std::vector<std::string_view> roles = {"system", "user", "assistant"};
    if (t.tools) roles.push_back("tool");
    if (messages.empty())
        throw Error("a chat needs at least 1 message and has 0; add a user message");
    bool has_tools = !options.tools.empty();
    for (const ChatMessage& m : messages) {
        const auto number = &m - messages.data() + 1;
        has_tools |= !m.tool_calls.empty();
        if (std::find(roles.begin(), roles.end(), m.role) == roles.end())
            throw Error(
                fmt::format("message {} of the chat has the role '{}'; the {} template "
                            "takes {}",
                            number, m.role, t.name, fmt::join(roles, ", ")));
        if (t.is_strict && m.role == "system" && number > 1)
            throw Error(
                fmt::format("the {} chat template takes a system message only as the "
                            "first, and message {} is one; move it",
                            t.name, number));
    }
    if (has_tools && !t.tools)
        throw Error(fmt::format("the {} chat template knows no tools; leave them out", t.name));
}

/// The last message of a user that is more than the result of a tool; the last of all if there is
/// none.
size_t last_query(const ChatTemplate& t, Messages messages) {
    for (size_t i = messages.size(); i-- > 0;) {
        const std::string_view content = content_of(t, messages[i]);
        const bool is_result =
            content.starts_with("<tool_response>") && content.ends_with("</tool_response>");
        if (messages[i].role == "user" && !is_result) return i;
    }
    if (!t.is_strict) return messages.size() - 1;
    throw Error(
        fmt::format("the {} chat template needs a user message, and none of the {} messages is "
                    "one; add it",
                    t.name, messages.size()));
}

/// The system turn in front, if there is to be one.
void add_system(const ChatTemplate& t, Messages messages, const ChatOptions& options, Pieces& out) {
    const bool is_given = messages[0].role == "system";
    std::string text(is_given ? content_of(t, messages[0]) : t.default_system);
    const bool has_text = is_given || !t.default_system.empty();
    if (!options.tools.empty())
        text = system_with_tools(*t.tools, options.tools, has_text ? &text : nullptr);
    if (t.shows_date)
        text = fmt::format("Cutting Knowledge Date: December 2023\nToday Date: {}\n\n{}",
                           options.date, text);
    if (has_text || !text.empty()) add_turn(*t.marks, "system", text, out);
}

/// Results of tools that follow each other share a turn of the user.
void add_tool_result(const ChatTemplate& t, Messages messages, size_t i, Pieces& out) {
    const auto is_tool = [&](size_t at) { return messages[at].role == "tool"; };
    if (i == 0 || !is_tool(i - 1)) {
        add_token(t.marks->begin, out);
        add_text("user", out);
    }
    add_text(fmt::format("\n<tool_response>\n{}\n</tool_response>", content_of(t, messages[i])),
             out);
    if (i + 1 == messages.size() || !is_tool(i + 1)) end_turn(*t.marks, out);
}

void add_answer(const ChatTemplate& t, const AnswerPlace& place, Pieces& out) {
    begin_turn(*t.marks, "assistant", out);
    const std::string_view answer = t.answer(t, place, out);
    if (const auto& calls = place.message().tool_calls; !calls.empty())
        add_text(t.tools->calls(calls, answer), out);
    end_turn(*t.marks, out);
}

void add_generation_prompt(const ChatTemplate& t, std::optional<bool> thinking, Pieces& out) {
    begin_turn(*t.marks, "assistant", out);
    if (!thinking) thinking = t.thinking;
    if (thinking && !*thinking) add_think_block("", out);
    if (opens_thinking(t, thinking)) {
        add_token("<think>", out);
        add_text("\n", out);
    }
}

}  // namespace

std::vector<ChatPiece> render_chat(const ChatTemplate& t, std::span<const ChatMessage> messages,
                                   const ChatOptions& options) {
    check_messages(t, messages, options);
    const size_t query = last_query(t, messages);
    Pieces out;
    add_token(t.marks->text_begin, out);
    add_system(t, messages, options, out);
    for (size_t i = messages[0].role == "system" ? 1 : 0; i < messages.size(); ++i) {
        const ChatMessage& m = messages[i];
        if (m.role == "tool")
            add_tool_result(t, messages, i, out);
        else if (m.role == "assistant")
            add_answer(t, {messages, i, query}, out);
        else
            add_turn(*t.marks, m.role, content_of(t, m), out);
    }
    if (options.add_generation_prompt) add_generation_prompt(t, options.thinking, out);
    return out;
}

bool opens_thinking(const ChatTemplate& t, std::optional<bool> thinking) {
    return thinking.value_or(t.thinking.value_or(false)) && t.opens_thinking;
}

std::string text_of(std::span<const ChatPiece> pieces) {
    std::string text;
    for (const ChatPiece& piece : pieces) text += piece.text;
    return text;
}

}  // namespace hf
