// Vocabularies as GGUF's keys give them: what is read, and what is refused.
#include "libcore/text/vocab_data.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "libcore/base/error.h"
#include "libcore/text/tokenizer.h"

using namespace hf;

namespace {

using Ids = std::vector<int32_t>;

/// a, b, ab, a control token and a user's, and one that is padding.
VocabData byte_level() {
    VocabData d;
    d.model = "gpt2";
    d.pre = "gpt-2";
    d.tokens = {"a", "b", "ab", "<s>", "<t>", "[PAD]", "<u>"};
    d.token_types = {1, 1, 1, 3, 4, 5, 1};
    d.merges = {"a b"};
    d.bos_token_id = 3;
    return d;
}

/// The 256 bytes, then a few words of which some have equal scores.
VocabData spaced() {
    static const auto kBytes = [] {
        std::vector<std::string> names;
        for (int byte = 0; byte < 256; ++byte) {
            char name[7];
            std::snprintf(name, sizeof name, "<0x%02X>", unsigned(byte));
            names.push_back(name);
        }
        return names;
    }();
    VocabData d;
    d.model = "llama";
    d.pre = "default";
    for (const std::string& name : kBytes) d.tokens.push_back(name);
    d.token_types.assign(256, 6);
    for (const char* text : {"<unk>", "<s>", "</s>"}) d.tokens.push_back(text);
    d.token_types.insert(d.token_types.end(), {2, 3, 3});
    for (const char* text : {"\u2581", "a", "b", "aa", "aaa", "\u2581a", "\u00E9"}) {
        d.tokens.push_back(text);
        d.token_types.push_back(1);
    }
    d.scores.assign(d.tokens.size(), 0.0f);
    d.bos_token_id = 257;
    d.eos_token_id = 258;
    return d;
}

std::string error_of(const VocabData& data) {
    try {
        Tokenizer::from_vocab("m.gguf", data);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("vocab data: types say which tokens are merged, found, special, or do not exist") {
    const Tokenizer t = Tokenizer::from_vocab("m.gguf", byte_level());
    CHECK(t.encode("ab<s><t>a<u>") == Ids{2, 3, 4, 0, 6});
    CHECK(t.encode("<s><t>", {.parse_special = false}) == Ids{4});
    CHECK(t.is_special(3));
    CHECK_FALSE(t.is_special(4));
    CHECK_FALSE(t.is_known(5));
    CHECK_FALSE(t.is_special(6));  // of an older file: no type, and no merge makes it

    VocabData untyped = byte_level();
    untyped.token_types.clear();
    CHECK(Tokenizer::from_vocab("m.gguf", untyped).encode("<s>[PAD]") == Ids{3});
}

TEST_CASE("vocab data: what stands around a text goes by the keys, else by pre") {
    const auto around = [](VocabData d) {
        return Tokenizer::from_vocab("m.gguf", d).encode("a", {.add_special = true});
    };
    VocabData d = byte_level();
    CHECK(around(d) == Ids{0});
    d.pre = "llama-bpe";
    CHECK(around(d) == Ids{3, 0});
    d.add_bos_token = false;
    CHECK(around(d) == Ids{0});
    d.add_eos_token = true;
    d.eos_token_id = 4;
    CHECK(around(d) == Ids{0, 4});
    d.add_bos_token.reset();
    d.bos_token_id.reset();  // on, but there is none
    CHECK(around(d) == Ids{0, 4});

    VocabData s = spaced();
    CHECK(around(s) == Ids{257, 264});
    s.add_space_prefix = false;
    CHECK(around(s) == Ids{257, 260});
    s.add_bos_token = false;
    CHECK(around(s) == Ids{260});
}

TEST_CASE("vocab data: of equal scores the leftmost pair merges first, whatever it is made of") {
    VocabData d = spaced();
    d.add_space_prefix = false;
    const auto encode = [&](const char* text) {
        return Tokenizer::from_vocab("m.gguf", d).encode(text);
    };
    CHECK(encode("aaaa") == Ids{263, 260});
    CHECK(encode("aaaaaa") == Ids{263, 263});
    d.scores[262] = 1;  // aa before aaa
    CHECK(encode("aaaa") == Ids{262, 262});
    CHECK(encode("aaaaa") == Ids{262, 263});
    CHECK(encode("a\u00E9\u00E8") == Ids{260, 265, 0xC3, 0xA8});  // no token: by its bytes
}

TEST_CASE("vocab data: a merge may cross from a word to the next") {
    VocabData d = spaced();
    d.add_space_prefix = false;
    CHECK(Tokenizer::from_vocab("m.gguf", d).encode("a a") == Ids{260, 264});
    d.tokens.push_back("a\u2581a");
    d.token_types.push_back(1);
    d.scores.push_back(-1);
    CHECK(Tokenizer::from_vocab("m.gguf", d).encode("a a") == Ids{266});
}

TEST_CASE("vocab data: errors name the file, the key and the element") {
    const auto with = [](VocabData d, const std::function<void(VocabData&)>& change) {
        change(d);
        return error_of(d);
    };
    const auto check = [](const std::string& error, const std::string& says) {
        CHECK_MESSAGE(error.find("m.gguf: tokenizer.ggml." + says) != error.npos, error);
    };
    const std::string broken = "\xFF<";
    const std::string longer(257, 'a');
    using D = VocabData;
    const auto gpt2 = [&](const std::function<void(D&)>& f) { return with(byte_level(), f); };
    check(gpt2([](D& d) { d.model = "bert"; }), R"(model: "bert" is not known here)");
    check(gpt2([](D& d) { d.model = ""; }), R"(model: "" is not known here)");
    check(gpt2([](D& d) { d.pre = "default"; }), R"(pre: "default" is not known here)");
    check(gpt2([](D& d) { d.token_types.pop_back(); }), "token_type: has 6 elements for 7 tokens");
    check(gpt2([](D& d) { d.token_types[1] = 7; }), "token_type: token 1 has the type 7");
    check(gpt2([](D& d) { d.token_types[1] = 0; }), "token_type: token 1 has the type 0");
    check(gpt2([](D& d) { d.token_types[1] = INT32_MIN; }), "token_type: token 1 has the type -");
    check(gpt2([](D& d) { d.tokens[1] = "a"; }), R"(tokens: "a" is token 0 and token 1)");
    check(gpt2([&](D& d) { d.tokens[3] = broken; }), "tokens: token 3, ");
    check(gpt2([](D& d) { d.merges = {"ab"}; }), R"(merges: "ab", number 0, has no space)");
    check(gpt2([](D& d) { d.merges = {"a b", "a c"}; }), R"(merges[1]: "c" is not in)");
    check(gpt2([](D& d) { d.merges = {"b a"}; }), R"(merges[0]: "ba" is not in)");
    check(gpt2([](D& d) { d.merges = {"[PAD] a"}; }), R"(merges[0]: "[PAD]" is not in)");
    check(gpt2([](D& d) { d.bos_token_id = 7; }), "bos_token_id: 7 is none of the 7 tokens");
    check(gpt2([](D& d) { d.bos_token_id = -1; }), "bos_token_id: -1 is none");
    check(gpt2([](D& d) { d.bos_token_id = 5; }), "bos_token_id: 5 is none");
    check(gpt2([](D& d) { d.add_eos_token = true; }), "eos_token_id: is missing");
    VocabData none;
    none.model = "gpt2";
    none.pre = "qwen2";
    CHECK(error_of(none) == "m.gguf: the vocabulary has 0 tokens");

    const auto llama = [&](const std::function<void(D&)>& f) { return with(spaced(), f); };
    check(llama([](D& d) { d.scores.clear(); }), "scores: has 0 elements for 266 tokens");
    check(llama([](D& d) { d.scores[260] = NAN; }), "scores: token 260 has nan");
    check(llama([](D& d) { d.token_types[65] = 5; }), "token_type: there is no token for the byte");
    check(llama([&](D& d) { d.tokens[261] = longer; }), "tokens[261]: \"aaa");
    CHECK(llama([](D& d) { d.tokens[65] = "<0xG0>"; }) ==
          R"(m.gguf: the token "<0xG0>" with the id 65 is no byte)");
}

TEST_CASE("vocab data: any mixture of tokens, types, scores and merges is refused or works") {
    std::mt19937 random(/*seed=*/26);
    const std::string_view texts[] = {"a",       "b",   "ab",    "aa",       "\u2581",
                                      "\u2581a", "<a>", "\xFF",  "\xE2\x96", "<0x41>",
                                      "",        "ba",  "\u0120"};
    int refused = 0;
    for (int i = 0; i < 20000; ++i) {
        VocabData d = random() % 2 ? byte_level() : spaced();
        d.add_space_prefix = random() % 2 == 0;
        for (size_t changes = 1 + random() % 3; changes-- > 0;) {
            const size_t at = random() % d.tokens.size();
            if (random() % 2) d.tokens[at] = texts[random() % std::size(texts)];
            if (random() % 4 == 0) d.token_types[at] = int32_t(1 + random() % 6);
            if (!d.scores.empty() && random() % 2) d.scores[at] = float(random() % 5);
            if (random() % 8 == 0) d.merges.push_back("a a");
        }
        try {
            const Tokenizer t = Tokenizer::from_vocab("m.gguf", d);
            for (const int32_t id : t.encode("a b aaaab<a>\u2581\u00E9", {.add_special = true}))
                CHECK(t.is_known(id));
        } catch (const Error& error) {
            ++refused;
            CHECK(std::string_view(error.what()).starts_with("m.gguf: "));
        }
    }
    CHECK(refused > 1000);
    CHECK(refused < 19000);
}
