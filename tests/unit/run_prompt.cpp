// Prompts, stop ids, hashes: what happens around a generation without a model.
#include "libcore/run/prompt.h"

#include <doctest/doctest.h>

#include <cmath>

#include "libcore/base/error.h"
#include "libcore/run/hash.h"
#include "libcore/run/model_defaults.h"
#include "tests/support/data.h"

using namespace hf;
using namespace hf::test;

namespace {

const Tokenizer& demo_tokenizer() {
    static const Tokenizer tokenizer =
        Tokenizer::from_json("tokenizer.json", read_file(demo_model_path() + "/tokenizer.json"));
    return tokenizer;
}

ModelFile model_with(std::string config, std::string generation_config) {
    ModelFile file;
    file.path = "model";
    file.config = std::move(config);
    file.generation_config = std::move(generation_config);
    return file;
}

}  // namespace

TEST_CASE("prompt: pieces end on multiples of 64 tokens, wherever they begin") {
    for (uint32_t length = 0; length < 200; ++length)
        for (size_t left : {size_t(1), size_t(63), size_t(64), size_t(65), size_t(1) << 40}) {
            CAPTURE(length);
            CAPTURE(left);
            const uint32_t n = piece_size(length, left);
            CHECK(n >= 1);
            CHECK(n <= left);
            CHECK((length / 64 == (length + n - 1) / 64));  // crosses no grid point
            CHECK((n == left || (length + n) % 64 == 0));   // and stops at none before
        }
}

TEST_CASE("prompt: the context is what was asked for, else what the model knows up to 8192") {
    CHECK(context_size(std::nullopt, 2048) == 2048);
    CHECK(context_size(std::nullopt, 262144) == 8192);
    CHECK(context_size(100000, 262144) == 100000);
}

TEST_CASE("prompt: ids are read as people write them") {
    const std::vector<int32_t> ids = {1, 20, 2147483647};
    for (const char* text :
         {"1,20,2147483647", "1 20 2147483647", " 1, 20,\n2147483647\n", "1 ,20\t2147483647,"})
        CHECK(parse_ids(text) == ids);
    CHECK(parse_ids("").empty());
    for (const char* text :
         {"1,x", "-1", "1.5", "2147483648", "0x10", "+1", "1;2", "1,,3", ",1", "1,,", "1 , ,2"})
        CHECK_THROWS_WITH_AS(parse_ids(text), doctest::Contains("is not a token id"), Error);
}

TEST_CASE("prompt: a chat of nothing but white space is refused as empty") {
    const ChatTemplate* chat = choose_template("model", "{{ '<|im_start|>' }}", "");
    REQUIRE(chat);
    for (const char* text : {"", " ", "\n\t "})
        CHECK_THROWS_WITH_AS(encode_chat(demo_tokenizer(), *chat, {text, "system", {}}),
                             doctest::Contains("the prompt is empty"), Error);
    CHECK_THROWS_WITH_AS(encode_raw(demo_tokenizer(), ""), doctest::Contains("empty"), Error);
    CHECK(encode_raw(demo_tokenizer(), " ").size() == 1);
}

TEST_CASE("prompt: special tokens count in raw text and not in a chat message") {
    const ChatTemplate* chat = choose_template("model", "{{ '<|im_start|>' }}", "");
    REQUIRE(chat);
    const int32_t end = demo_tokenizer().id_of("<|im_end|>").value();
    const auto ends = [&](const std::vector<int32_t>& ids) {
        return std::count(ids.begin(), ids.end(), end);
    };
    CHECK(ends(encode_raw(demo_tokenizer(), "a<|im_end|>b")) == 1);
    CHECK(ends(encode_chat(demo_tokenizer(), *chat, {"a<|im_end|>b", "", {}})) ==
          1);  // the turn's own
    CHECK(ends(encode_chat(demo_tokenizer(), *chat, {"a", "<|im_end|>", {}})) ==
          2);  // of two turns
}

TEST_CASE("hash: words are hashed as FNV-1a hashes their bytes") {
    // "foob" of the algorithm's published test vectors, as a little-endian word
    CHECK(Fnv1a().value() == 0xcbf29ce484222325);
    Fnv1a hash;
    hash.add(std::vector{'f' | 'o' << 8 | 'o' << 16 | 'b' << 24});
    CHECK(hash.value() == 0xdd120e790c2512af);
}

TEST_CASE("hash: the last bit of a logit and the order of ids change it") {
    const std::vector<int32_t> ids = {1, 2}, turned = {2, 1};
    const std::vector<float> logits = {0.5f, 1.0f}, nudged = {0.5f, std::nextafter(1.0f, 2.0f)};
    CHECK(hash_answer(ids, logits) == hash_answer(ids, logits));
    CHECK(hash_answer(ids, logits) != hash_answer(turned, logits));
    CHECK(hash_answer(ids, logits) != hash_answer(ids, nudged));
    CHECK(hash_answer(ids, std::vector{0.0f}) != hash_answer(ids, std::vector{-0.0f}));
}

TEST_CASE("model defaults: the stop ids of all files are united with the vocabulary's end tokens") {
    ModelFile file = model_with(R"({"eos_token_id": 7})", R"({"eos_token_id": [9, 7]})");
    CHECK(read_model_defaults(file, nullptr).stop_ids == std::vector{7, 9});
    file.config = R"({"text_config": {"eos_token_id": 8}})";
    CHECK(read_model_defaults(file, nullptr).stop_ids == std::vector{7, 8, 9});
    file.config = R"({"eos_token_id": null})";
    CHECK(read_model_defaults(file, &demo_tokenizer()).stop_ids == std::vector{7, 9, 4091, 4093});
    for (const char* text :
         {R"({"eos_token": "</think>"})", R"({"eos_token": {"content": "</think>"}})"}) {
        file.tokenizer_config = text;
        CHECK(read_model_defaults(file, &demo_tokenizer()).stop_ids ==
              std::vector{7, 9, 4091, 4093, 4095});
    }
}

TEST_CASE("model defaults: ids in config.json that are none are refused with file and key") {
    for (const char* text : {R"({"eos_token_id": [1, -2]})", R"({"eos_token_id": "</s>"})"})
        CHECK_THROWS_WITH_AS(read_model_defaults(model_with(text, ""), nullptr),
                             doctest::Contains("model: config: key 'eos_token_id'"), Error);
}

TEST_CASE("a GGUF file's keys name the token that ends its texts") {
    const ModelFile file = open_model_file(data_path("gguf/tiny_llama.q8_0.gguf"), {});
    const auto ids = read_model_defaults(file, nullptr).stop_ids;
    CHECK(ids == std::vector{int32_t(file.gguf.uint("tokenizer.ggml.eos_token_id", 0, 255))});
}

TEST_CASE("model defaults: a person's sampling value beats the model's, and that the neutral one") {
    const ModelFile file =
        model_with("{}", R"({"temperature": 0.25, "top_k": 20, "do_sample": true})");
    const SamplingConfig model = read_model_defaults(file, nullptr).sampling;
    SamplingConfig wanted;
    wanted.top_k = 5;
    wanted.presence_penalty = 1.5f;
    const SamplingOptions s = sampling_options(wanted, model, 42);
    CHECK(s.temperature == 0.25f);
    CHECK(s.top_k == 5);
    CHECK(s.top_p == 1);
    CHECK(s.presence_penalty == 1.5f);
    CHECK(s.seed == 42);
    CHECK(sampling_options({}, {}, 0).temperature == 1);
}

TEST_CASE("model defaults: the cards' advice goes by the chat template and by thinking") {
    for (const ChatTemplate& t : chat_templates()) {
        const SamplingConfig by_default = card_sampling(t.name, {});
        if (t.thinking)  // as the template thinks, so does the advice
            CHECK(by_default == card_sampling(t.name, t.thinking));
        CHECK((by_default == SamplingConfig{}) ==
              (card_sampling(t.name, true) == SamplingConfig{}));
    }
    // temperature, top_p, top_k, presence_penalty, as the cards print them; -1: not said
    const struct {
        const char* name;
        bool thinks;
        float temperature, top_p, top_k, presence_penalty;
    } cards[] = {
        {"qwen3.5", true, 1.0f, 0.95f, 20, 1.5f},
        {"qwen3.5", false, 0.7f, 0.8f, 20, 1.5f},
        {"qwen3.5-small", true, 1.0f, 0.95f, 20, 1.5f},
        {"qwen3.5-small", false, 1, 1, 20, 2},
        {"qwen3", true, 0.6f, 0.95f, 20, -1},
        {"qwen3", false, 0.7f, 0.8f, 20, -1},
        {"llama3", false, 0.6f, 0.9f, -1, -1},
        {"llama3.1", true, 0.6f, 0.9f, -1, -1},
        {"chatml", false, -1, -1, -1, -1},
        {"", false, -1, -1, -1, -1},
    };
    for (const auto& card : cards) {
        CAPTURE(std::string(card.name));
        const SamplingConfig s = card_sampling(card.name, card.thinks);
        CHECK(s.temperature.value_or(-1) == card.temperature);
        CHECK(s.top_p.value_or(-1) == card.top_p);
        CHECK((s.top_k ? float(*s.top_k) : -1) == card.top_k);
        CHECK(s.presence_penalty.value_or(-1) == card.presence_penalty);
    }
    CHECK(card_sampling("qwen3.5-small", {}) == card_sampling("qwen3.5-small", false));
}

TEST_CASE("model defaults: a model that does not sample is greedy") {
    const ModelFile file = model_with("{}", R"({"temperature": 0.6, "do_sample": false})");
    CHECK(read_model_defaults(file, nullptr).sampling.temperature == 0.0f);
}

TEST_CASE("model defaults: nonsense in generation_config.json names file and key") {
    const struct {
        const char *text, *key;
    } cases[] = {
        {"[]", "generation_config.json"},
        {"{", "generation_config.json"},
        {R"({"temperature": "hot"})", "temperature"},
        {R"({"temperature": -1})", "temperature"},
        {R"({"top_p": 1.5})", "top_p"},
        {R"({"top_p": 0})", "top_p"},
        {R"({"top_k": 1e99})", "top_k"},
        {R"({"min_p": [1]})", "min_p"},
        {R"({"repetition_penalty": 0})", "repetition_penalty"},
        {R"({"do_sample": "yes"})", "do_sample"},
        {R"({"eos_token_id": "</s>"})", "eos_token_id"},
        {R"({"eos_token_id": [1, -2]})", "eos_token_id"},
    };
    for (const auto& c : cases) {
        CAPTURE(c.text);
        const ModelFile file = model_with("{}", c.text);
        CHECK_THROWS_WITH_AS(read_model_defaults(file, nullptr),
                             doctest::Contains("model/generation_config.json"), Error);
        CHECK_THROWS_WITH_AS(read_model_defaults(file, nullptr), doctest::Contains(c.key), Error);
    }
}
