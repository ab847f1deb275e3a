// Turns of an assistant: what templates keep of its reasoning.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/text/chat.h"

namespace hf {

/// An assistant's message in its conversation.
struct AnswerPlace {
    std::span<const ChatMessage> messages;
    size_t at;
    size_t query;  // the last message in which the user asked something

    const ChatMessage& message() const { return messages[at]; }
};

/// The content as the row wants it.
std::string_view content_of(const ChatTemplate& chat_template, const ChatMessage& message);

/// <think>, the reasoning, </think>, an empty line.
void add_think_block(std::string_view reasoning, std::vector<ChatPiece>& out);

/// Values of ChatTemplate::answer. Reasoning that is not given apart stands in the content, before
/// the first </think>; the answer is what follows the last. What is returned is a view into the
/// message.
///
/// whole_answer   the content, whatever is in it
/// qwen3_answer   behind the query: a block if there is reasoning or nothing follows; else none
/// qwen35_answer  behind the query: always a block; else none
std::string_view whole_answer(const ChatTemplate&, const AnswerPlace&, std::vector<ChatPiece>& out);
std::string_view qwen3_answer(const ChatTemplate&, const AnswerPlace&, std::vector<ChatPiece>& out);
std::string_view qwen35_answer(const ChatTemplate&, const AnswerPlace&,
                               std::vector<ChatPiece>& out);

}  // namespace hf
