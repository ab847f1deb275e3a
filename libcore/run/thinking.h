// Thinking: what a model writes before it answers, told apart while it comes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hf {

enum class AnswerPart : uint8_t { thinking, answer };

/// A piece of an answer as a person may read it: the marks around thinking are left out.
using OnAnswer = std::function<void(AnswerPart part, std::string_view text)>;

/// Cuts the text of an answer at </think>. Thinking is open from the start when the prompt ended
/// inside a <think> block, or when <think> is the first that the model writes. Newlines at the
/// beginning of either part are left out. A later mark is text, as it is for the chat templates.
class ThinkingSplitter {
  public:
    ThinkingSplitter(bool is_open, OnAnswer on_answer)
        : state_(is_open ? State::thinking : State::start), on_answer_(std::move(on_answer)) {}

    /// Text as it becomes readable, cut anywhere. The end of it that may be part of a mark is held
    /// back.
    void push(std::string_view text);
    /// The answer has ended: what was held back is text.
    void flush();

    /// What was thought; none if the model did not think.
    const std::optional<std::string>& thinking() const { return thinking_; }
    const std::string& answer() const { return answer_; }

  private:
    enum class State : uint8_t { start, thinking, answer };
    State state_;
    OnAnswer on_answer_;
    std::string held_;
    std::optional<std::string> thinking_;
    std::string answer_;

    void emit(std::string_view text);
};

}  // namespace hf
