#include "libcore/text/chat_answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "libcore/text/unicode.h"

namespace hf {
namespace {

using Pieces = std::vector<ChatPiece>;

std::string_view without_newlines_before(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
    return text;
}
std::string_view without_newlines(std::string_view text) {
    text = without_newlines_before(text);
    return text.substr(0, text.find_last_not_of('\n') + 1);
}

/// What an assistant thought and what it answered.
struct Answer {
    std::string_view reasoning, content;
};

Answer split_answer(const ChatTemplate& t, const ChatMessage& m) {
    constexpr std::string_view kOpen = "<think>", kClose = "</think>";
    const std::string_view content = content_of(t, m);
    if (m.reasoning) return {*m.reasoning, content};
    const size_t close = content.find(kClose);
    if (close == content.npos) return {{}, content};

    std::string_view reasoning = content.substr(0, close);
    if (const size_t open = reasoning.rfind(kOpen); open != reasoning.npos)
        reasoning.remove_prefix(open + kOpen.size());
    const std::string_view rest = content.substr(content.rfind(kClose) + kClose.size());
    return {without_newlines(reasoning), without_newlines_before(rest)};
}

void add_text(std::string_view text, Pieces& out) {
    out.push_back({std::string(text), false});
}

}  // namespace

std::string_view content_of(const ChatTemplate& t, const ChatMessage& m) {
    return t.trims_content ? trim(m.content) : std::string_view(m.content);
}

void add_think_block(std::string_view reasoning, Pieces& out) {
    out.push_back({"<think>", true});
    add_text(fmt::format("\n{}\n", reasoning), out);
    out.push_back({"</think>", true});
    add_text("\n\n", out);
}

std::string_view whole_answer(const ChatTemplate& t, const AnswerPlace& place, Pieces& out) {
    const std::string_view content = content_of(t, place.message());
    add_text(content, out);
    return content;
}

std::string_view qwen3_answer(const ChatTemplate& t, const AnswerPlace& place, Pieces& out) {
    const Answer answer = split_answer(t, place.message());
    const bool is_last = place.at + 1 == place.messages.size();
    if (place.at > place.query && (is_last || !answer.reasoning.empty())) {
        add_think_block(without_newlines(answer.reasoning), out);
        add_text(without_newlines_before(answer.content), out);
    } else {
        add_text(answer.content, out);
    }
    return answer.content;
}

std::string_view qwen35_answer(const ChatTemplate& t, const AnswerPlace& place, Pieces& out) {
    const Answer answer = split_answer(t, place.message());
    if (place.at > place.query) add_think_block(trim(answer.reasoning), out);
    add_text(answer.content, out);
    return answer.content;
}

}  // namespace hf
