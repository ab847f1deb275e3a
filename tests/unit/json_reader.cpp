// JsonReader against another parser: the same texts are accepted, and they mean the same.
#include "libcore/file/json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "tests/support/data.h"
#include "tests/unit/temp_folder.h"

namespace {

using hf::JsonReader;
using nlohmann::json;
using namespace hf::test;

json read_value(JsonReader& reader) {
    json value;
    switch (reader.peek()) {
        case JsonReader::Kind::object:
            value = json::object();
            reader.object([&](const std::string& key) { value[key] = read_value(reader); });
            return value;
        case JsonReader::Kind::array:
            value = json::array();
            reader.array([&] { value.push_back(read_value(reader)); });
            return value;
        case JsonReader::Kind::string:
            return reader.string();
        case JsonReader::Kind::number:
            return json::parse(reader.number());
        case JsonReader::Kind::boolean:
        case JsonReader::Kind::null:
            reader.skip();
            return nullptr;
    }
    return value;
}

/// What the reader makes of a text, true and false read as null; nothing when it refuses.
std::optional<json> read_all(const std::string& text) {
    std::optional<json> value;
    hf::test::error_of([&] {
        JsonReader reader(text, "x");
        json read = read_value(reader);
        reader.end();
        value = read;
    });
    return value;
}

bool skips(const std::string& text) {
    return error_of([&] {
               JsonReader reader(text, "x");
               reader.skip();
               reader.end();
           }) == "";
}

/// The other parser's view of it.
std::optional<json> expected(const std::string& text) {
    json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) return std::nullopt;
    const auto forget = [](auto& self, json& v) -> void {
        if (v.is_boolean()) v = nullptr;
        if (v.is_structured())
            for (json& child : v) self(self, child);
    };
    forget(forget, value);
    return value;
}

void check_same(const std::string& text) {
    CAPTURE(text);
    const std::optional<json> value = expected(text);
    CHECK(read_all(text) == value);
    CHECK(skips(text) == value.has_value());
}

const char* const kTexts[] = {
    "",
    " ",
    "{}",
    "[]",
    "{",
    "[",
    "}",
    "nul",
    "null",
    "true",
    "false",
    "nullx",
    " \t\r\n1 ",
    "[1,]",
    "[,1]",
    "[1 2]",
    R"({"a":1,})",
    R"({"a" 1})",
    R"({a:1})",
    R"({"a":1 "b":2})",
    R"({"a":1,"a":2})",
    R"({1:2})",
    "0",
    "-0",
    "01",
    "-",
    "+1",
    "1.",
    ".5",
    "1.5",
    "1e5",
    "1E+5",
    "1e-5",
    "1e",
    "1e+",
    "1.5e2",
    "0x1",
    "18446744073709551615",
    "123456789012345678901234567890",
    R"("a)",
    R"("\)",
    R"("\")",
    R"("\x")",
    R"("\"\\\/\b\f\n\r\t")",
    R"("\u00e9\u20ac\uD834\uDD1E\u0000")",
    R"("\ud834")",
    R"("\ud834x")",
    R"("\ud834\n")",
    R"("\ud834\u0041")",
    R"("\udd1e")",
    R"("\u12g4")",
    R"("\u12)",
    "\"\t\"",
    "\"\x7f\"",
    "\"\xC3\xA9 \xE2\x82\xAC \xF0\x9D\x84\x9E\"",
    "\"\xC0\x80\"",
    "\"\xE0\x80\x80\"",
    "\"\xED\xA0\x80\"",
    "\"\xF0\x80\x80\x80\"",
    "\"\xF4\x90\x80\x80\"",
    "\"\xF8\x88\x80\x80\x80\"",
    "\"\x80\"",
    "\"\xC3\"",
    "\"\xE2\x82",
    "\"\xEF\xBF\xBF\"",
    "[1]]",
    "\x01",
    R"([[[],{}],{"a":{"b":[null,true,-1.25e-3]}}])",
};

TEST_CASE("json: what is accepted, and what it means, agrees with another parser") {
    for (const char* text : kTexts) check_same(text);
    check_same(std::string("[1,\0]", 5));
    check_same(read_file(data_path("models/tiny_qwen35_b/config.json")));
    check_same(read_file(demo_model_path() + "/tokenizer_config.json"));
}

TEST_CASE("json: damaged texts are judged as another parser judges them") {
    const std::string whole = R"({"a":[1,-2.5e3,{"b":"\u00e9\ud834\udd1e\n"}],"caf)"
                              "\xC3\xA9"
                              R"(":null,"":[true,false,[]]})";
    std::mt19937 random(/*seed=*/5);
    for (int round = 0; round < 5'000; ++round) {
        std::string text = whole;
        const char likely[] = "{}[]\",:\\ue0-.tn \x80\xED";
        text[random() % text.size()] =
            random() % 2 ? likely[random() % (sizeof(likely) - 1)] : char(random());
        check_same(text);
    }
    for (size_t n = 0; n < whole.size(); ++n) check_same(whole.substr(0, n));
}

TEST_CASE("json: nesting is read to 64 levels and no deeper") {
    CHECK(skips(std::string(64, '[') + std::string(64, ']')));
    CHECK(!skips(std::string(65, '[') + std::string(65, ']')));
    CHECK(skips("[" + std::string(64, ' ') + "[],[],{}]"));
}

}  // namespace
