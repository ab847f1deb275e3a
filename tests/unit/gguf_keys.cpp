// Keys of GGUF files: every type is read, and what does not fit is refused with its name and value.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "libcore/file/gguf.h"
#include "tests/support/gguf_writer.h"
#include "tests/unit/temp_folder.h"

namespace {

using namespace hf;
using namespace hf::test;

/// The keys of a file in memory.
struct Keys {
    explicit Keys(std::vector<GgufKeyParts> parts) : file(bytes_of(std::move(parts))) {
        keys = GgufKeys("dir/x.gguf", read_gguf(file.first(file.size), "dir/x.gguf", 0).keys);
    }
    static std::string bytes_of(std::vector<GgufKeyParts> parts) {
        GgufParts gguf;
        gguf.keys = std::move(parts);
        return gguf.bytes();
    }
    const GgufKeys* operator->() const { return &keys; }

    ExactBytes file;
    GgufKeys keys;
};

TEST_CASE("gguf keys: a whole number is taken from every integer type that holds it") {
    const GgufKeyParts kParts[] = {
        gguf_key("k", uint8_t(7)),  gguf_key("k", int8_t(7)),   gguf_key("k", uint16_t(7)),
        gguf_key("k", int16_t(7)),  gguf_key("k", uint32_t(7)), gguf_key("k", int32_t(7)),
        gguf_key("k", uint64_t(7)), gguf_key("k", int64_t(7)),
    };
    for (const GgufKeyParts& part : kParts) {
        CAPTURE(part.type);
        const Keys keys({part});
        CHECK(keys->uint("k", 7, 7) == 7);
        CHECK(keys->uints("k", 2, 7, 7) == std::vector<uint32_t>{7, 7});
        CHECK(keys->number("k", 7, 7) == 7.0);
        CHECK(has_words(error_of([&] { keys->uint("k", 8, 9); }),
                        "dir/x.gguf: key 'k' is 7 ( + ); it must be a whole number from 8 to 9"));
    }
    CHECK(Keys({gguf_key("k", true)})->uint("k", 0, 1) == 1);
    CHECK(Keys({gguf_key("k", UINT32_MAX)})->uint("k", 0, UINT32_MAX) == UINT32_MAX);
}

TEST_CASE("gguf keys: absent keys give the fallback, or are named when there is none") {
    const Keys keys({gguf_key("k", uint32_t(1))});
    CHECK(!keys->empty());
    CHECK(GgufKeys().empty());
    CHECK(keys->has("k"));
    CHECK(!keys->has("j"));
    CHECK(keys->uint("j", 5, 6, 1) == 1);
    CHECK(keys->number("j", 5, 6, 1.5) == 1.5);
    CHECK(keys->text("j", "t") == "t");
    CHECK(keys->boolean("j", true));
    CHECK(keys->uints("j", 3, 5, 6, 1) == std::vector<uint32_t>{1, 1, 1});
    CHECK(keys->strings("j").size() == 0);
    CHECK(keys->strings("j").begin() == keys->strings("j").end());
    CHECK(keys->floats("j").empty());
    CHECK(keys->ints("j").empty());
    CHECK(error_of([&] { keys->uint("j", 0, 1); }) == "dir/x.gguf: key 'j' is missing");
    CHECK(error_of([&] { keys->number("j", 0, 1); }) == "dir/x.gguf: key 'j' is missing");
    CHECK(error_of([&] { keys->uints("j", 1, 0, 1); }) == "dir/x.gguf: key 'j' is missing");
    CHECK(error_of([&] { keys->fail("j", "is odd"); }) == "dir/x.gguf: key 'j' is odd");
}

TEST_CASE("gguf keys: single values are what was written") {
    const Keys keys({gguf_key("f", 0.1f), gguf_key("d", 0.1), gguf_key("i", int32_t(-3)),
                     gguf_key("s", "a\nb"), gguf_key("no", false), gguf_key("yes", true)});
    CHECK(keys->number("f", 0, 1) == double(0.1f));
    CHECK(keys->number("d", 0, 1) == 0.1);
    CHECK(keys->number("i", -3, 0) == -3.0);
    CHECK(keys->text("s", "") == "a\nb");
    CHECK(!keys->boolean("no", true));
    CHECK(keys->boolean("yes", false));
}

TEST_CASE("gguf keys: lists are what was written") {
    const std::vector<std::string> words = {"", "a", "b c", std::string("\0\xFF", 2)};
    const Keys keys(
        {gguf_list("s", words), gguf_list("f", std::vector<float>{1.5f, -2}),
         gguf_list("u", std::vector<uint16_t>{3, 4}), gguf_list("b", std::vector<uint8_t>{1, 0}),
         gguf_list("i", std::vector<int64_t>{-1, 5}), gguf_list("none", std::vector<float>{})});
    std::vector<std::string> read;
    for (const std::string_view word : keys->strings("s")) read.emplace_back(word);
    CHECK(read == words);
    CHECK(keys->strings("s").size() == words.size());
    CHECK(keys->floats("f") == std::vector<float>{1.5f, -2});
    CHECK(keys->floats("u") == std::vector<float>{3, 4});
    CHECK(keys->ints("u") == std::vector<int32_t>{3, 4});
    CHECK(keys->ints("i") == std::vector<int32_t>{-1, 5});
    CHECK(keys->uints("u", 2, 3, 4) == std::vector<uint32_t>{3, 4});
    CHECK(keys->strings("none").size() == 0);
    CHECK(keys->ints("none").empty());
}

TEST_CASE("gguf keys: what does not fit is refused by key, value and bounds") {
    const Keys keys({gguf_key("s", "text"), gguf_key("f", 1.5f), gguf_key("nan", NAN),
                     gguf_key("inf", INFINITY), gguf_key("big", UINT64_MAX),
                     gguf_key("minus", int32_t(-1)), gguf_key("one", uint8_t(1)),
                     gguf_key("yes", true), gguf_list("us", std::vector<uint32_t>{1, 2, 9}),
                     gguf_list("fs", std::vector<float>{1}),
                     gguf_list("bigs", std::vector<uint32_t>{1, 0x80000000}),
                     gguf_list("ss", std::vector<std::string>{"a"})});
    const std::pair<const char*, std::function<void()>> kRefused[] = {
        {"'s' is the string 'text'; it must be a whole number from 0 to 9",
         [&] { keys->uint("s", 0, 9); }},
        {"'f' is 1.5 (f32); it must be a whole number", [&] { keys->uint("f", 0, 9); }},
        {"'big' is 18446744073709551615 (u64); it must be a whole number from 0 to 4294967295",
         [&] { keys->uint("big", 0, UINT32_MAX); }},
        {"'minus' is -1 (i32); it must be a whole number from 0",
         [&] { keys->uint("minus", 0, UINT32_MAX); }},
        {"'us' is a list of 3 values, not a single one", [&] { keys->uint("us", 0, 9); }},
        {"'nan' is nan (f32); it must be a number from 0 to 9", [&] { keys->number("nan", 0, 9); }},
        {"'inf' is inf (f32); it must be a number", [&] { keys->number("inf", 0, 9); }},
        {"'s' is the string 'text'; it must be a number", [&] { keys->number("s", 0, 9); }},
        {"'yes' is true (bool); it must be a number", [&] { keys->number("yes", 0, 9); }},
        {"'one' is 1 (u8), not a string", [&] { keys->text("one", ""); }},
        {"'one' is 1 (u8); it must be true or false", [&] { keys->boolean("one", false); }},
        {"'ss' is a list of 1 values, not a single one", [&] { keys->text("ss", ""); }},
        {"'us' is a list of 3 values; it must be one value or 2",
         [&] { keys->uints("us", 2, 0, 9); }},
        {"'us' has, as value 2, 9 (u32); it must be a whole number from 0 to 8",
         [&] { keys->uints("us", 3, 0, 8); }},
        {"'fs' has, as value 0, 1 (f32); it must be a whole number",
         [&] { keys->uints("fs", 1, 0, 8); }},
        {"'one' is 1 (u8), not a list of values", [&] { keys->strings("one"); }},
        {"'us' is a list of u32, not of strings", [&] { keys->strings("us"); }},
        {"'ss' is a list of string, not of numbers", [&] { keys->floats("ss"); }},
        {"'fs' is a list of f32, not of whole numbers", [&] { keys->ints("fs"); }},
        {"'bigs' has, as value 1, 2147483648 (u32); it must be below 2^31",
         [&] { keys->ints("bigs"); }},
    };
    for (const auto& [words, read] : kRefused) {
        CAPTURE(words);
        const std::string sentence = error_of(read);
        CAPTURE(sentence);
        CHECK(sentence.starts_with("dir/x.gguf: key "));
        CHECK(has_words(sentence, words));
    }
}

}  // namespace
