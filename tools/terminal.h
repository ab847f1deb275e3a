// Terminal: lines that a person edits, with history, pastes and signals. libedit does the editing.
//
// The terminal's modes are changed only while a line is edited; whatever way that ends (a line, an
// exception, a signal), they are as before. While a model computes, the terminal is untouched.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hf {

/// How a line ended.
enum class LineEnd : uint8_t {
    text,
    interrupted,  // Ctrl-C; the text is what was typed until then
    closed,       // Ctrl-D
    ended,        // a signal wants the process to end, or the terminal is gone
};

struct Line {
    LineEnd end;
    std::string text;  // UTF-8 without control characters but newlines (a paste) and tabs
};

class LineEditor {
  public:
    /// On standard input and output, which are terminals. catch_chat_signals() was called.
    ///
    /// has_escapes  whether the terminal knows more than plain text (see cli.h)
    /// Errors  hf::Error when the terminal cannot be used
    explicit LineEditor(bool has_escapes);
    ~LineEditor();

    /// Edits one line. A paste of several lines is inserted as it is and stays one line. Sleeps
    /// while nothing is typed. Follows the window's size; Ctrl-Z stops the process with the
    /// terminal restored. In a paste such keys are text, though not for terminals without escapes.
    Line read(const std::string& prompt);

    /// Adds a line to those that the up arrow brings back.
    void remember(const std::string& line);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A paste as it is inserted: newlines as terminals send them become '\n', those at its end, which
/// come with whole lines, go; control characters as in terminal_text().
std::string pasted_text(std::string text);

/// Gives the terminal the modes it had before the line that is being edited, if one is. May be
/// called in signal handlers.
void restore_terminal();

/// Text as a terminal may show it: control characters, which could move the cursor or worse, become
/// U+FFFD; newlines and tabs stay. `text` is UTF-8 or is made so.
std::string terminal_text(std::string_view text);

}  // namespace hf
