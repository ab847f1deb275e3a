// ChatFile: a conversation as JSON, for /save and /load. docs/chat.md describes it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/chat.h"

namespace hf {

/// The text of a file: valid JSON in UTF-8, whatever the messages hold.
///
/// model  for people who read the file; any model may go on with the conversation
std::string chat_file_text(std::span<const ChatMessage> messages, std::string_view model);

/// The messages in such a text, which may come from anywhere: nothing but roles, contents and
/// reasoning is taken, and every character survives only as terminal_text() leaves it.
///
/// label   names the file in errors
/// Errors  hf::Error: not JSON, not such a file, a version that is not known, a key that is not
///         known or comes twice, a message without role or content
std::vector<ChatMessage> parse_chat_file(std::string_view text, std::string_view label);

}  // namespace hf
