#include "tools/chat_screen.h"

#include <fmt/format.h>

#include "tools/page.h"

namespace hf {

void ChatScreen::put(std::string_view text, std::string_view colour) {
    if (text.empty()) return;
    is_at_row_start_ = text.ends_with('\n');
    if (style_.has_colours && !colour.empty())
        write_(fmt::format("{}{}{}", colour, text, kPlain));
    else
        write_(text);
}

void ChatScreen::end_thinking() {
    if (last_ == Last::hidden) {
        put(style_.has_escapes ? "\r\x1b[K" : "\n", "");
        is_at_row_start_ = true;
    }
    if (last_ != Last::thinking) return;
    if (!is_at_row_start_) put("\n", "");
    put(style_.has_colours ? "\n" : "(end of thinking)\n\n", "");
}

void ChatScreen::answer(AnswerPart part, std::string_view text) {
    if (part == AnswerPart::answer) {
        end_thinking();
        last_ = Last::answer;
        put(terminal_text(text), "");
    } else if (!shows_thinking_) {
        if (last_ != Last::hidden) put("thinking ...", kDim);
        last_ = Last::hidden;
    } else {
        if (last_ == Last::nothing && !style_.has_colours) put("(thinking)\n", "");
        last_ = Last::thinking;
        put(terminal_text(text), kDim);
    }
}

void ChatScreen::end_answer() {
    if (last_ != Last::answer) end_thinking();
    if (!is_at_row_start_) put("\n", "");
    last_ = Last::nothing;
}

void ChatScreen::note(std::string_view line) {
    put(terminal_text(line) + "\n", kDim);
}

void ChatScreen::error(std::string_view line) {
    put(fmt::format("error: {}\n", terminal_text(line)), kRed);
}

}  // namespace hf
