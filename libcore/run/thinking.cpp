#include "libcore/run/thinking.h"

#include <algorithm>

namespace hf {
namespace {

constexpr std::string_view kOpen = "<think>", kClose = "</think>", kBlank = " \t\r\n";

/// Bytes at the end of the text that a mark could begin with.
size_t begun(std::string_view text, std::string_view mark) {
    size_t n = std::min(text.size(), mark.size() - 1);
    while (!text.ends_with(mark.substr(0, n))) --n;
    return n;
}

}  // namespace

void ThinkingSplitter::emit(std::string_view text) {
    const bool thinks = state_ == State::thinking;
    if (thinks && !thinking_) thinking_.emplace();
    std::string& part = thinks ? *thinking_ : answer_;
    if (part.empty()) text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
    if (text.empty()) return;
    part += text;
    if (on_answer_) on_answer_(thinks ? AnswerPart::thinking : AnswerPart::answer, text);
}

void ThinkingSplitter::push(std::string_view text) {
    held_ += text;
    if (state_ == State::start) {
        const size_t at = std::min(held_.find_first_not_of(kBlank), held_.size());
        const std::string_view first = std::string_view(held_).substr(at);
        if (first.size() < kOpen.size() && kOpen.starts_with(first)) return;
        const bool thinks = first.starts_with(kOpen);
        if (thinks) held_.erase(0, at + kOpen.size());
        state_ = thinks ? State::thinking : State::answer;
    }
    if (state_ == State::thinking) {
        const size_t at = held_.find(kClose);
        const bool is_closed = at != held_.npos;
        const size_t size = is_closed ? at : held_.size() - begun(held_, kClose);
        emit(std::string_view(held_).substr(0, size));
        held_.erase(0, is_closed ? at + kClose.size() : size);
        if (is_closed) state_ = State::answer;
    }
    if (state_ == State::answer) flush();
}

void ThinkingSplitter::flush() {
    if (state_ == State::start) state_ = State::answer;
    emit(held_);
    held_.clear();
}

}  // namespace hf
