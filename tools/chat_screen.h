// ChatScreen: how a chat looks. What the model writes and what the program says, on one terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "libcore/run/thinking.h"
#include "tools/terminal.h"

namespace hf {

struct ScreenStyle {
    bool has_escapes = false;  // the terminal takes escape sequences
    bool has_colours = false;  // and the person wants colours
};

class ChatScreen {
  public:
    /// write  takes what the terminal gets
    ChatScreen(std::function<void(std::string_view)> write, ScreenStyle style, bool shows_thinking)
        : write_(std::move(write)), style_(style), shows_thinking_(shows_thinking) {}

    void show_thinking(bool on) { shows_thinking_ = on; }

    /// A piece of an answer, as it comes. Thinking is dimmed; without colours it stands between
    /// lines that say so; hidden, one word says that it goes on. Each write leaves the terminal in
    /// its plain colours, so an end at any point does too.
    void answer(AnswerPart part, std::string_view text);
    /// Ends the answer, at the beginning of a row.
    void end_answer();

    /// A line of the program's own, dimmed; one about something wrong, in red.
    void note(std::string_view line);
    void error(std::string_view line);
    /// Text as it is, rows ended by newlines.
    void print(std::string_view text) { write_(terminal_text(text)); }

  private:
    enum class Last : unsigned char { nothing, thinking, hidden, answer };
    std::function<void(std::string_view)> write_;
    ScreenStyle style_;
    bool shows_thinking_;
    Last last_ = Last::nothing;
    bool is_at_row_start_ = true;

    void put(std::string_view text, std::string_view colour);
    void end_thinking();
};

}  // namespace hf
