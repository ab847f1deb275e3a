// UTF-8, normalisation and split patterns on examples that can be checked by eye.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "libcore/text/pretokenize.h"
#include "libcore/text/unicode.h"

using namespace hf;

namespace {

std::vector<std::string> split(std::string_view pattern, std::string_view text) {
    std::vector<std::string> pieces;
    for (size_t at = 0, end; at < text.size(); at = end) {
        end = split_pattern(pattern).piece_end(text, at);
        REQUIRE(end > at);
        pieces.emplace_back(text.substr(at, end - at));
    }
    return pieces;
}

using Pieces = std::vector<std::string>;

}  // namespace

TEST_CASE("split qwen35: contractions, spaces, newlines, digits and symbols") {
    CHECK(split("qwen35", "I'm  here\n\n  x1234!") ==
          Pieces{"I", "'m", " ", " here", "\n\n", " ", " x", "1", "2", "3", "4", "!"});
    CHECK(split("qwen35", "a   b") == Pieces{"a", "  ", " b"});
    CHECK(split("qwen35", "a \n \n  ") == Pieces{"a", " \n \n", "  "});
    CHECK(split("qwen35", "'Re'X '\u017Fx") == Pieces{"'Re", "'X", " '", "\u017Fx"});
    CHECK(split("qwen35", "x;\n\r\n y") == Pieces{"x", ";\n\r\n", " y"});
    CHECK(split("qwen35", "a\u3000b \u00A0") == Pieces{"a", "\u3000b", " \u00A0"});
    CHECK(split("qwen35", "\"q\"") == Pieces{"\"q", "\""});
}

TEST_CASE("split qwen35: marks belong to words") {
    CHECK(split("qwen35", "\u0915\u093F \u0939\u093F\u0902\u0926\u0940") ==
          Pieces{"\u0915\u093F", " \u0939\u093F\u0902\u0926\u0940"});
    CHECK(split("qwen35", "\u0301a 1\u0301\u0302") == Pieces{"\u0301a", " ", "1", "\u0301\u0302"});
}

TEST_CASE("split: patterns differ in marks, numbers, newlines and case") {
    using P = Pieces;
    struct Row {
        const char* text;
        P qwen2, llama3, gpt2, smollm;
    };
    const Row rows[] = {
        {"\u0915\u093F \u0939", P{"\u0915", "\u093F", " \u0939"}, P{"\u0915", "\u093F", " \u0939"},
         P{"\u0915", "\u093F", " \u0939"}, P{"\u0915", "\u093F", " \u0939"}},
        {"x 12345", P{"x", " ", "1", "2", "3", "4", "5"}, P{"x", " ", "123", "45"},
         P{"x", " 12345"}, P{"x", " ", "1", "2", "3", "4", "5"}},
        {"a   1  b  ", P{"a", "  ", " ", "1", " ", " b", "  "},
         P{"a", "  ", " ", "1", " ", " b", "  "}, P{"a", "  ", " 1", " ", " b", "  "},
         P{"a", "   ", "1", " ", " b", "  "}},
        {"a\n\n b;\n", P{"a", "\n\n", " b", ";\n"}, P{"a", "\n\n", " b", ";\n"},
         P{"a", "\n\n", " b", ";", "\n"}, P{"a", "\n\n", " b", ";", "\n"}},
        {"I'LL (we'll)", P{"I", "'LL", " (", "we", "'ll", ")"},
         P{"I", "'LL", " (", "we", "'ll", ")"}, P{"I", "'", "LL", " (", "we", "'ll", ")"},
         P{"I", "'", "LL", " (", "we", "'ll", ")"}},
        {"\tx (y", P{"\tx", " (", "y"}, P{"\tx", " (", "y"}, P{"\t", "x", " (", "y"},
         P{"\t", "x", " (", "y"}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        CHECK(split("qwen2", row.text) == row.qwen2);
        CHECK(split("llama3", row.text) == row.llama3);
        CHECK(split("gpt2", row.text) == row.gpt2);
        CHECK(split("smollm", row.text) == row.smollm);
    }
}

TEST_CASE("split: before spaces, between words, and not at all") {
    const std::string text = "  a  b c ";
    CHECK(split("spaces", text) == Pieces{" ", " a", " ", " b", " c", " "});
    CHECK(split("words", text) == Pieces{"  a", "  b", " c", " "});
    CHECK(split("whole", text) == Pieces{text});
}

TEST_CASE("split: a pattern that has no row is not found") {
    CHECK(find_split_pattern("") == nullptr);
    CHECK(find_split_pattern(std::string(split_pattern("qwen35").regex) + "|") == nullptr);
}

TEST_CASE("nfc: composes, orders and keeps apart what the standard says") {
    const std::pair<const char*, const char*> rows[] = {
        {"e\u0301", "\u00E9"},
        {"o\u0302\u0323", "\u1ED9"},  // below before above, then composed
        {"a\u0315\u0300\u05AE\u0062", "\u00E0\u05AE\u0315b"},
        {"\u1100\u1161\u11A8", "\uAC01"},  // Hangul by arithmetic
        {"\uAC00\u11A8", "\uAC01"},
        {"\uAC00\u11A7", "\uAC00\u11A7"},  // U+11A7 is no final
        {"\u0958", "\u0915\u093C"},        // excluded from composition
        {"\u212B\u2126", "\u00C5\u03A9"},  // singletons
        {"\u09C7\u09BE", "\u09CB"},        // a second part with class 0
        {"\u0300", "\u0300"},
        {"\uFB01", "\uFB01"},  // compatibility stays
        {"", ""},
    };
    for (const auto& [text, want] : rows) {
        CAPTURE(text);
        CHECK(nfc(text) == want);
        CHECK(nfc(want) == want);
    }
}

TEST_CASE("nfc: a hundred thousand marks in the worst order are put in order in time") {
    std::string marks = "a", want = "a";
    for (int i = 0; i < 100000; ++i) marks += i % 2 ? "\u0323" : "\u0315";  // classes 220 and 232
    for (int i = 0; i < 50000; ++i) want += "\u0323";
    for (int i = 0; i < 50000; ++i) want += "\u0315";
    want.replace(0, 3, "\u1EA1");  // a and the first dot below
    CHECK(nfc(marks) == want);
}

TEST_CASE("UTF-8: one replacement for each longest part that a character can begin with") {
    const std::pair<std::string, std::string> rows[] = {
        {"abc\xFF\xFE def", "abc\uFFFD\uFFFD def"},
        {"\xE2\x82", "\uFFFD"},
        {"\xE2\x82"
         "a",
         "\uFFFDa"},
        {"\xF0\x9F\x98 x", "\uFFFD x"},
        {"\xC0\xAF", "\uFFFD\uFFFD"},
        {"\xE0\x80\xAF", "\uFFFD\uFFFD\uFFFD"},
        {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},  // a surrogate
        {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
        {"\xF5\x80", "\uFFFD\uFFFD"},
        {"\xF0\x9F\x98\x80\x80", "\U0001F600\uFFFD"},
        {"\u007F\u0080\u07FF\u0800\uD7FF\uE000\uFFFF\U00010000\U0010FFFF",
         "\u007F\u0080\u07FF\u0800\uD7FF\uE000\uFFFF\U00010000\U0010FFFF"},
    };
    for (const auto& [bytes, want] : rows) CHECK(replace_invalid_utf8(bytes) == want);
}

TEST_CASE("UTF-8: random bytes, once replaced, are valid and split without a gap") {
    std::mt19937 random(/*seed=*/22);
    for (int i = 0; i < 2000; ++i) {
        std::string bytes(random() % 40, '\0');
        for (char& c : bytes)
            c = char(random() % 4 == 0 ? random() : random() % 64 + 0x80 + random() % 2 * 64);
        const std::string text = replace_invalid_utf8(bytes);
        CHECK(replace_invalid_utf8(text) == text);
        for (const char* pattern : {"qwen35", "llama3", "gpt2", "smollm", "spaces", "words"}) {
            std::string joined;
            for (const std::string& piece : split(pattern, text)) joined += piece;
            CHECK(joined == text);
        }
    }
}

TEST_CASE("trim: takes white space of every kind from both ends only") {
    CHECK(trim("  a b\n\t ") == "a b");
    CHECK(trim("\u00A0\u3000\u2028\u001Fx\u0085") == "x");
    CHECK(trim("\u200Bx") == "\u200Bx");
    CHECK(trim(" \n") == "");
    CHECK(trim("") == "");
}
