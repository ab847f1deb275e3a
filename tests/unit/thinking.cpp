// What a model thinks, told apart from what it answers.
#include <doctest/doctest.h>

#include "libcore/run/thinking.h"

using namespace hf;

namespace {

struct Split {
    std::string thinking, answer;  // as they came, piece by piece
    std::optional<std::string> kept_thinking;
    std::string kept_answer;
};

/// The text pushed in pieces of `size` bytes.
Split split(bool is_open, std::string_view text, size_t size) {
    Split s;
    ThinkingSplitter splitter(is_open, [&](AnswerPart part, std::string_view piece) {
        CHECK(!piece.empty());
        (part == AnswerPart::thinking ? s.thinking : s.answer) += piece;
    });
    for (; !text.empty(); text.remove_prefix(std::min(size, text.size())))
        splitter.push(text.substr(0, size));
    splitter.flush();
    s.kept_thinking = splitter.thinking();
    s.kept_answer = splitter.answer();
    return s;
}

}  // namespace

TEST_CASE("thinking: the parts are the same however the text is cut") {
    const struct {
        bool is_open;
        std::string text;
        std::optional<std::string> thinking;
        std::string answer;
    } cases[] = {
        {false, "Hello.", {}, "Hello."},
        {false, "", {}, ""},
        {false, "  \n", {}, "  \n"},
        {false, " < a", {}, " < a"},
        {false, "<thin", {}, "<thin"},
        {false, "a <think>b</think>c", {}, "a <think>b</think>c"},
        {false, "x</think>y", {}, "x</think>y"},
        {false, "\n<think>\nhm\n</think>\n\nYes.\n", "hm\n", "Yes.\n"},
        {false, "<think></think>Yes.", "", "Yes."},
        {true, "hm", "hm", ""},
        {true, "hm</thin", "hm</thin", ""},
        {true, "hm </ </think", "hm </ </think", ""},
        {true, "</think>\n\nYes.", "", "Yes."},
        {true, "a<</think>b</think>c", "a<", "b</think>c"},
        {true, "\n\nhm\n</think>\n\n  Yes.", "hm\n", "  Yes."},
    };
    for (const auto& c : cases)
        for (size_t size = 1; size <= std::max<size_t>(c.text.size(), 1); ++size) {
            CAPTURE(c.text);
            CAPTURE(size);
            const Split s = split(c.is_open, c.text, size);
            CHECK(s.kept_thinking == c.thinking);
            CHECK(s.kept_answer == c.answer);
            CHECK(s.thinking == c.thinking.value_or(""));
            CHECK(s.answer == c.answer);
        }
}

TEST_CASE("thinking: text that can be no mark is not held back") {
    std::string seen;
    ThinkingSplitter splitter(true, [&](AnswerPart, std::string_view piece) { seen += piece; });
    splitter.push("one < two </th");
    CHECK(seen == "one < two ");
    splitter.push("ree");
    CHECK(seen == "one < two </three");
    splitter.push("</think>answer <");
    CHECK(seen == "one < two </threeanswer <");
}
