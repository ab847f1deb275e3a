// What of a text from outside may be shown.
#include "libcore/base/printable.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/file/message.h"

using namespace hf;

TEST_CASE("printable: control characters and bytes that are no UTF-8 become one '?' each") {
    const std::pair<std::string, const char*> cases[] = {
        {"plain text, ~", "plain text, ~"},
        {"\x1b[2Jqwen\r\n", "?[2Jqwen??"},
        {std::string("a\0b\x7f", 4), "a?b?"},
        {"caf\u00e9 \u4e2d \U0001F600 \u00a0", "caf\u00e9 \u4e2d \U0001F600 \u00a0"},
        {"\u0080\u009b31m\u009f", "??31m?"},  // C1: a second way to begin an escape sequence
        {"\x9b", "?"},
        {"\xc3", "?"},
        {"\xe4\xb8", "??"},
        {"\xed\xa0\x80\xff", "????"},
        {"", ""},
    };
    for (const auto& [text, want] : cases) {
        const std::string exact(text);
        CHECK(printable(exact) == want);
        CHECK(std::string(Error(exact).what()) == want);
        CHECK(shown(exact) == fmt::format("'{}'", want));
    }
    for (int c = 0; c < 256; ++c)
        CHECK((printable(std::string(1, char(c))) == "?") == (c < 32 || c >= 127 || c == '?'));
}

TEST_CASE("shown: long texts are cut, whatever they are cut through") {
    const std::string most(100, 'x'), cut = most.substr(1) + "\u00e9";
    CHECK(shown(most) == fmt::format("'{}'", most));
    CHECK(shown(most + "x") == fmt::format("'{}...'", most));
    CHECK(shown(cut) == fmt::format("'{}?...'", most.substr(1)));
}
