// Files that are damaged, hostile, or ask for what this program does not do.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/text/tokenizer.h"

using namespace hf;

namespace {

/// A small complete file: a, b, ab, and one special token.
const std::string kGood = R"({
  "added_tokens": [{"id": 9, "content": "<|end|>", "special": true, "normalized": false}],
  "normalizer": {"type": "NFC"},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
  "post_processor": null,
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "ignore_merges": false, "vocab": {"a": 0, "b": 1, "ab": 2, "ba": 4},
            "merges": [["a", "b"]]}
})";

/// As small, SentencePiece's kind.
const std::string kGoodSpaced = R"({
  "added_tokens": [{"id": 0, "content": "<s>", "special": true, "normalized": false}],
  "normalizer": null,
  "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first",
    "split": false},
  "post_processor": null,
  "decoder": {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
    {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
  "model": {"type": "BPE", "dropout": null, "byte_fallback": true,
            "vocab": {"a": 1, "\u2581": 2, "<0x62>": 3, "\u2581a": 4},
            "merges": [["\u2581", "a"]]}
})";

/// The good file with one place changed.
std::string with(const std::string& old, const std::string& replacement,
                 const std::string& good = kGood) {
    std::string json = good;
    const size_t at = json.find(old);
    REQUIRE(at != json.npos);
    return json.replace(at, old.size(), replacement);
}

/// Reads from memory that ends where the text ends.
Tokenizer load(const std::string& json) {
    const auto exact = std::make_unique<char[]>(json.size());
    std::memcpy(exact.get(), json.data(), json.size());
    return Tokenizer::from_json("f.json", {exact.get(), json.size()});
}

std::string error_of(const std::string& json) {
    try {
        load(json);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

using Ids = std::vector<int32_t>;

}  // namespace

TEST_CASE("tokenizer.json: a small good file is read") {
    const Tokenizer t = load(kGood);
    CHECK(t.encode("ab<|end|>ba") == Ids{2, 9, 1, 0});
    CHECK(t.known_ids() == 10);
    CHECK(t.is_known(4));
    CHECK_FALSE(t.is_known(3));  // gaps
    CHECK_FALSE(t.is_known(8));
    CHECK(t.bytes(3).empty());
}

TEST_CASE("tokenizer.json: a token that merges do not reach is used only under ignore_merges") {
    CHECK(load(kGood).encode("ba") == Ids{1, 0});
    const Tokenizer t = load(with(R"("ignore_merges": false)", R"("ignore_merges": true)"));
    CHECK(t.encode("ba") == Ids{4});
    CHECK(t.encode("baab") == Ids{1, 0, 2});
}

TEST_CASE("tokenizer.json: bytes without a token are left out before merging") {
    CHECK(load(kGood).encode("axxb") == Ids{2});
    CHECK(load(kGood).encode("xyz").empty());
}

TEST_CASE("tokenizer.json: merges may be written as strings") {
    CHECK(load(with(R"(["a", "b"])", R"("a b")")).encode("ab") == Ids{2});
}

TEST_CASE("tokenizer.json: of added tokens that begin alike the longest wins, whatever follows") {
    const Tokenizer t = load(with(R"("added_tokens": [)", R"("added_tokens": [
        {"id": 5, "content": "<|"}, {"id": 6, "content": "<|en"}, {"id": 7, "content": "<|end|>a"},)"));
    CHECK(t.encode("<|end|>ab<|end|>b<|enda<|b<|") == Ids{7, 1, 9, 1, 6, 0, 5, 1, 5});
    CHECK(t.encode("<|end|>b", {.parse_special = false}) == Ids{6, 1});
}

TEST_CASE("tokenizer.json: a template puts its tokens around the text when asked") {
    const Tokenizer t =
        load(with(R"("post_processor": null)", R"("post_processor": {"type": "Sequence",
        "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing", "single": [
            {"SpecialToken": {"id": "<|end|>"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "x"}}],
            "special_tokens": {"<|end|>": {"ids": [9]}, "x": {"ids": [0, 1]}}}]})"));
    CHECK(t.encode("ab") == Ids{2});
    CHECK(t.encode("ab", {.add_special = true}) == Ids{9, 2, 0, 1});
}

TEST_CASE("tokenizer.json: a file cut short anywhere is refused") {
    for (size_t size = 0; size < kGood.size(); ++size) {
        CAPTURE(size);
        CHECK(error_of(kGood.substr(0, size)).starts_with("f.json"));
    }
}

TEST_CASE("tokenizer.json: errors say where and what") {
    struct Row {
        const char *old, *replacement, *says;
    };
    const Row rows[] = {
        // numbers
        {R"("b": 1)", R"("b": -1)",
         R"(f.json.model.vocab["b"]: the id "-1" is not a whole number of 0 to 16777215)"},
        {R"("b": 1)", R"("b": 16777216)", R"(the id "16777216" is not)"},
        {R"("b": 1)", R"("b": 99999999999999999999)", "f.json: is not JSON"},
        {R"("b": 1)", R"("b": 18446744073709551615)", R"(the id "18446744073709551615" is not)"},
        {R"("b": 1)", R"("b": 1.5)", R"(the id "1.5" is not)"},
        {R"("b": 1)", R"("b": "1")", R"(model.vocab["b"]: the id)"},
        {R"("b": 1)", R"(7: 1)", "f.json: is not JSON"},
        {R"("b": 1)", R"("b": 0)", "f.json: two tokens have the id 0"},
        {R"("b": 1)", R"("a": 1)", R"(f.json.model.vocab: "a" is listed twice)"},
        {R"("id": 9)", R"("id": 1)", R"(f.json: two tokens have the id 1)"},
        {R"("id": 9)", R"("id": 4294967305)", "f.json.added_tokens[0].id: the id"},
        {R"("<|end|>")", R"("ab")",
         R"(f.json.added_tokens[0]: "ab" has the id 9 here and 2 before)"},
        {R"("<|end|>")", R"("")", "f.json.added_tokens[0]: the content is empty"},
        {R"("added_tokens": [)", R"("added_tokens": [{"id": 9, "content": "<|end|>"},)",
         "the id 9 is listed twice"},
        {R"({"a": 0, "b": 1, "ab": 2, "ba": 4})", "[]", "f.json.model.vocab: must be an object"},
        // merges
        {R"(["a", "b"])", R"(["a", "c"])",
         R"(f.json.model.merges[0]: "c" is not in the vocabulary of 4 tokens)"},
        {R"(["a", "b"])", R"(["a", "b"], ["b", "b"])", R"(f.json.model.merges[1]: "bb" is not in)"},
        {R"(["a", "b"])", R"(["a"])", "merges[0]: must be"},
        {R"(["a", "b"])", R"(["a", "b", "c"])", "merges[0]: must be"},
        {R"(["a", "b"])", R"(["a", 1])", "merges[0]: must be"},
        {R"(["a", "b"])", R"("ab")", "merges[0]: must be"},
        {R"(["a", "b"])", R"(null)", "merges[0]: must be"},
        {R"([["a", "b"]])", R"({})", "f.json.model.merges: must be a list"},
        // what is not done here
        {R"("BPE")", R"("Unigram")", R"(f.json.model: the model type "Unigram" is not supported)"},
        {R"("type": "BPE",)", R"("type": "BPE", "dropout": 0.1,)", "dropout is not supported"},
        {R"("type": "BPE",)", R"("type": "BPE", "byte_fallback": true,)",
         "byte_fallback = true with this decoder is not supported"},
        {R"("type": "BPE",)", R"("type": "BPE", "unk_token": "a",)",
         "unk_token with no token for the byte 0"},
        {R"("type": "BPE",)", R"("type": "BPE", "end_of_word_suffix": "</w>",)",
         "end_of_word_suffix is not supported"},
        {R"("NFC")", R"("NFKC")", R"(f.json.normalizer: the normalizer "NFKC" is not supported)"},
        {R"({"type": "NFC"})", R"({"type": "Sequence", "normalizers": [{"type": "Lowercase"}]})",
         R"(f.json.normalizer.normalizers[0]: the normalizer "Lowercase" is not supported)"},
        {R"(|\\p{N}|)", R"(|\\p{N}+|)", "pretokenizers[0].pattern.Regex: the split pattern"},
        {R"("Isolated")", R"("Removed")", "a behavior other than Isolated is not supported"},
        {R"("invert": false)", R"("invert": true)", "invert is not supported"},
        {R"(, "use_regex": false)", "", "use_regex behind Split is not supported"},
        {R"("add_prefix_space": false)", R"("add_prefix_space": true)",
         "add_prefix_space is not supported"},
        {R"("Split")", R"("Digits")", "individual_digits = false is not supported"},
        {R"("Split")", R"("Punctuation")", R"(the pre-tokenizer "Punctuation" is not supported)"},
        {R"({"type": "Split")", R"({"type": "Digits"}, {"type": "Split")",
         "a sequence of other than 1 or 2 steps"},
        {R"("type": "Sequence")", R"("type": "Metaspace")",
         R"(the pre-tokenizer "Metaspace" is not supported)"},
        {R"("decoder": {"type": "ByteLevel"})", R"("decoder": {"type": "Metaspace"})",
         R"(the decoder "Metaspace" is not supported)"},
        {R"("decoder": {"type": "ByteLevel"})", R"("decoder": {"type": "Fuse"})",
         "a decoder without ByteLevel"},
        {R"("post_processor": null)", R"("post_processor": {"type": "BertProcessing"})",
         R"("BertProcessing" is not)"},
        {R"("post_processor": null)", R"("post_processor": {"type": "TemplateProcessing", "single":
            [{"SpecialToken": {"id": "x"}}], "special_tokens": {"x": {"ids": [3]}}})",
         "the id 3 is not one of the 10"},
        {R"("normalized": false)", R"("single_word": true)",
         R"(single_word of "<|end|>" is not supported)"},
        {R"("normalized": false)", R"("rstrip": 1)", "rstrip: must be true or false"},
        // shapes
        {R"("model":)", R"("modell":)", R"(f.json: the key "model" is missing)"},
        {R"("decoder":)", R"("x":)", R"(f.json: the key "decoder" is missing)"},
        {R"("vocab":)", R"("x":)", R"(f.json.model: the key "vocab" is missing)"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.replacement);
        const std::string error = error_of(with(row.old, row.replacement));
        CHECK_MESSAGE(error.find(row.says) != error.npos, error);
    }
    for (const char* json : {"", "[]", "{}", "null", "\"x\"", "\xFF", "{\"a\":\"\\ud800\"}"})
        CHECK(error_of(json).starts_with("f.json: "));
}

TEST_CASE("tokenizer.json: errors of SentencePiece's vocabularies say where and what") {
    struct Row {
        const char *old, *replacement, *says;
    };
    const Row rows[] = {
        {R"("byte_fallback": true)", R"("byte_fallback": false)", "byte_fallback = false with"},
        {R"({"type": "ByteFallback"})", R"({"type": "Fuse"})", "a decoder without ByteLevel, or"},
        {R"("pattern": {"String": "\u2581"})", R"("pattern": {"String": "_"})",
         R"(f.json.decoder.decoders[0]: the decoder "Replace" is not supported)"},
        {R"("start": 1)", R"("start": 2)", R"(the decoder "Strip" is not supported)"},
        {R"("start": 1)", R"("start": -1)", "start: the id"},
        {R"("pre_tokenizer":)", R"("x":)", "f.json: a decoder of U+2581 without Metaspace or"},
        {R"("Metaspace")", R"("Whitespace")", R"(the pre-tokenizer "Whitespace" is not)"},
        {R"("prepend_scheme": "first")", R"("prepend_scheme": "last")", R"("last" is not)"},
        {R"("replacement": "\u2581")", R"("replacement": "_")", "a replacement other than U+2581"},
        {R"("normalizer": null)", R"("normalizer": {"type": "Prepend", "prepend": "\u2581"})",
         "Metaspace behind Prepend is not"},
        {R"("normalizer": null)", R"("normalizer": {"type": "Prepend", "prepend": "x"})",
         R"(the normalizer "Prepend" is not)"},
        {R"("normalizer": null)",
         R"("normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "b"})",
         R"(the normalizer "Replace" is not)"},
        {R"("normalized": false)", R"("normalized": true)", R"(normalized of "<s>", in)"},
        {R"("dropout": null)", R"("unk_token": "<s>")", "no token for the byte 0"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.replacement);
        const std::string error = error_of(with(row.old, row.replacement, kGoodSpaced));
        CHECK_MESSAGE(error.find(row.says) != error.npos, error);
    }
    const Tokenizer t = load(kGoodSpaced);
    CHECK(t.encode("a a<s>ab") == Ids{4, 4, 0, 1, 3});  // b has its byte
    CHECK(t.encode("xb") == Ids{2, 3});                 // x has none
    CHECK(t.decode(Ids{4, 0, 4, 3}, true) == "a ab");
}

TEST_CASE("tokenizer.json: a file with a few bytes changed is refused by its name or works") {
    std::mt19937 random(/*seed=*/24);
    int refused = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string json = kGood;
        for (size_t changes = 1 + random() % 3; changes-- > 0;)
            json[random() % json.size()] = kGood[random() % kGood.size()];
        try {
            const Tokenizer t = load(json);
            CHECK(t.known_ids() > 0);
            CHECK(t.decode(t.encode("ab<|end|>"), false).size() <= 9);
        } catch (const Error& error) {
            ++refused;
            CHECK(std::string_view(error.what()).starts_with("f.json"));
        }
    }
    CHECK(refused > 1000);
    CHECK(refused < 20000);
}

TEST_CASE("tokenizer.json: thousands of nested sequences are refused") {
    std::string nested = R"({"type": "NFC"})";
    for (int i = 0; i < 5000; ++i) nested = R"({"type":"Sequence","normalizers":[)" + nested + "]}";
    CHECK(error_of(with(R"({"type": "NFC"})", nested)).starts_with("f.json: is not JSON"));
}

TEST_CASE("tokenizer.json: long and unprintable texts are shortened and escaped in errors") {
    const std::string error =
        error_of(with(R"(["a", "b"])", R"(["a", "\n)" + std::string(100000, 'x') + R"("])"));
    CHECK(error.size() < 300);
    CHECK(error.find("\\n") != error.npos);
    CHECK(error.find('\n') == error.npos);
}
