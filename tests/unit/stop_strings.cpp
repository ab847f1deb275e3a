// Stop strings against a slow definition, with the text cut wherever it can be cut.
#include "libcore/run/stop_strings.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/run/sampler.h"
#include "libcore/text/unicode.h"

using namespace hf;

namespace {

using Strings = std::vector<std::string>;

/// The text up to the string that is complete first, the longest of those; all of it without one.
std::string cut_slowly(const std::string& text, const Strings& stops, bool& found) {
    for (size_t end = 1; end <= text.size(); ++end) {
        size_t longest = 0;
        for (const std::string& stop : stops)
            if (std::string_view(text).substr(0, end).ends_with(stop))
                longest = std::max(longest, stop.size());
        if (longest > 0) {
            found = true;
            return text.substr(0, end - longest);
        }
    }
    found = false;
    return text;
}

/// The longest end of the text that a stop string begins with, in bytes.
size_t open_end(std::string_view text, const Strings& stops) {
    for (size_t n = text.size(); n > 0; --n)
        for (const std::string& stop : stops)
            if (n < stop.size() && stop.starts_with(text.substr(text.size() - n))) return n;
    return 0;
}

/// Pushes the pieces and checks each step: no more and no less is held back than must be.
void check_pieces(const Strings& pieces, const Strings& stops) {
    CAPTURE(pieces);
    CAPTURE(stops);
    StopStrings filter(stops);
    std::string text, shown;
    bool found = false;
    for (const std::string& piece : pieces) {
        text += piece;
        shown += filter.push(piece);
        const std::string want = cut_slowly(text, stops, found);
        CHECK(shown == (found ? want : text.substr(0, text.size() - open_end(text, stops))));
        CHECK(filter.found() == found);
    }
    shown += filter.flush();
    CHECK(shown == cut_slowly(text, stops, found));
    CHECK(filter.push("x").size() == (found ? 0 : 1));
}

/// Every way to cut a text into three pieces, empty ones included, and into single bytes.
void check_every_split(const std::string& text, const Strings& stops) {
    for (size_t a = 0; a <= text.size(); ++a)
        for (size_t b = a; b <= text.size(); ++b)
            check_pieces({text.substr(0, a), text.substr(a, b - a), text.substr(b)}, stops);
    Strings bytes;
    for (const char c : text) bytes.push_back({c});
    check_pieces(bytes, stops);
}

}  // namespace

TEST_CASE("stop strings: wherever a text is cut, it ends in front of the first one") {
    check_every_split("one. User: two", {"User:"});
    check_every_split("one. Use two", {"User:"});
    check_every_split("one. User", {"User:"});  // flushed: it did not become one
    check_every_split("User: one", {"User:"});
    check_every_split("aaabaaab", {"aab"});  // the beginning repeats itself
    check_every_split("abababac", {"ababac"});
    check_every_split("abcd", {"abcd", "bc"});  // complete first
    check_every_split("xabc", {"c", "bc"});     // complete together: the longest
    check_every_split("\n\nend\n\n\n", {"\n\n\n", "END"});
    check_every_split("", {"a"});
    check_every_split("abc", {});
}

TEST_CASE("stop strings: random texts of few letters agree with the slow definition") {
    Random random(/*seed=*/11);
    const auto word = [&](size_t most) {
        std::string text;
        for (uint64_t n = 1 + random.next() % most; n > 0; --n)
            text += char('a' + random.next() % 2);
        return text;
    };
    for (int round = 0; round < 400; ++round) {
        Strings stops;
        for (uint64_t n = 1 + random.next() % 3; n > 0; --n) stops.push_back(word(6));
        Strings pieces;
        for (int n = 0; n < 8; ++n) pieces.push_back(word(4));
        check_pieces(pieces, stops);
    }
}

TEST_CASE("stop strings: what may be shown is whole characters") {
    const Strings letters = {"d", "é", "è", "中", "丬", "😀", "😁"};  // neighbours share first bytes
    for (const std::string& stop : letters)
        for (const std::string& a : letters)
            for (const std::string& b : letters) {
                StopStrings filter({stop + "!", stop + stop});
                for (const std::string& piece : {a, b, std::string("?")}) {
                    const std::string shown = filter.push(piece);
                    CHECK(shown == replace_invalid_utf8(shown));
                }
            }
}

TEST_CASE("stop strings: one that could never be met is refused") {
    CHECK_THROWS_WITH_AS(StopStrings({"a", ""}), doctest::Contains("is empty"), Error);
    for (const char* text : {"\xff", "a\xc3", "\xed\xa0\x80"})
        CHECK_THROWS_WITH_AS(StopStrings({text}), doctest::Contains("not UTF-8"), Error);
}
