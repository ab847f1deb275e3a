// Chat: a conversation in a terminal. docs/chat.md is its manual.
#pragma once

#include <functional>
#include <string>

#include "libcore/run/conversation.h"
#include "tools/chat_screen.h"

namespace hf {

struct ChatSetup {
    Conversation& conversation;
    std::string model, device;  // as /stats and saved chats name them
    ScreenStyle style;
    bool shows_thinking = true;
    bool is_quiet = false;               // no greeting
    std::string history_path;            // empty: no history is kept
    std::string home;                    // what ~/ in the name of a file means
    std::function<Progress()> progress;  // of one prompt, for a person who waits
};

/// Talks until the person leaves. Standard input and output are terminals. What goes wrong with one
/// message or command is said, and the chat goes on.
/// Returns the exit code: 0, or as interrupted_exit() says when a signal ended it
/// Errors  hf::Error when the terminal cannot be used
int chat(const ChatSetup& setup);

}  // namespace hf
