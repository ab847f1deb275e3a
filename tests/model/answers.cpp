// Whole answers of the bundled model, and how well it predicts a text, against its golden file.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "libcore/base/error.h"
#include "libcore/run/generate.h"
#include "libcore/run/perplexity.h"
#include "tests/support/data.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;
using Json = nlohmann::json;

namespace {

const std::atomic<bool> kNever{false};

const Json& golden() {
    static const Json json = Json::parse(read_file(demo_model_path() + "/golden.json"));
    return json;
}

const Tokenizer& demo_tokenizer() {
    static const Tokenizer tokenizer =
        Tokenizer::from_json("tokenizer.json", read_file(demo_model_path() + "/tokenizer.json"));
    return tokenizer;
}

Generation greedy_answer(Session& session, std::span<const int32_t> prompt,
                         const GenerateOptions& options, std::string* text = nullptr,
                         const std::atomic<bool>& interrupt = kNever) {
    Sampler sampler({.temperature = 0});
    return generate(
        session, prompt, sampler, text ? &demo_tokenizer() : nullptr, options,
        [&](const GeneratedToken& token) {
            if (text) *text += token.text;
        },
        {}, interrupt);
}

std::vector<int32_t> some_ids(size_t n) {
    Random random(4);
    std::vector<int32_t> ids(n);
    for (int32_t& id : ids) id = int32_t(random.next() % 4000);
    return ids;
}

}  // namespace

TEST_CASE(
    "answers: the golden prompts get their golden ids; a stop id is the last one and no text") {
    for (const Json& prompt : golden()["prompts"]) {
        CAPTURE(prompt["text"].get<std::string>());
        Loaded m(demo_model_path());
        const std::vector<int32_t> ids = prompt["input_ids"];
        std::vector<int32_t> want = prompt["greedy_ids"];
        const bool stops = !prompt["stop_index"].is_null();
        if (stops) want.resize(prompt["stop_index"].get<size_t>() + 1);

        std::string text;
        const Generation g =
            greedy_answer(m.session, ids, {.max_tokens = 48, .stop_ids = {4091, 4093}}, &text);
        CHECK(g.ids == want);
        CHECK(g.finish == (stops ? Finish::stop : Finish::length));
        CHECK(text == demo_tokenizer().decode(want, /*skip_special=*/true));
    }
}

TEST_CASE("answers: every stop id ends one, and so does every piece of its text as a stop string") {
    Loaded m(demo_model_path());
    const auto prompt = demo_tokenizer().encode("Once upon a time");
    const auto answer = [&](const GenerateOptions& options, std::string& text) {
        Session session(m.model, m.device, {64, kv_type_by_name("f16"), 1});
        return greedy_answer(session, prompt, options, &text);
    };
    std::string whole;
    const std::vector<int32_t> ids = answer({.max_tokens = 16}, whole).ids;
    REQUIRE(whole.size() > 40);
    for (const int32_t id : ids) {
        std::string text;
        const Generation g = answer({.max_tokens = 16, .stop_ids = {1, id}}, text);
        CHECK(g.finish == Finish::stop);
        CHECK(g.ids.back() == id);
        CHECK(whole.starts_with(text));
    }
    for (size_t at = 0; at + 5 <= 40; ++at) {  // begins and ends inside tokens, and spans several
        const std::string stop = whole.substr(at, 5);
        CAPTURE(stop);
        std::string text;
        const Generation g = answer({.max_tokens = 16, .stop_strings = {"no such", stop}}, text);
        CHECK(g.finish == Finish::stop_string);
        CHECK(text == whole.substr(0, whole.find(stop)));
        CHECK(std::equal(g.ids.begin(), g.ids.end(), ids.begin()));
    }
    std::string text;  // held back to the end, and shown then
    const std::string nearly = whole.substr(whole.size() - 9) + "#";
    CHECK(answer({.max_tokens = 16, .stop_strings = {nearly}}, text).finish == Finish::length);
    CHECK(text == whole);
}

TEST_CASE("answers: the context is used to its last token, and a longer prompt is refused") {
    Setup setup;
    setup.max_seq = 20;
    for (size_t n : {1, 19, 20}) {
        Loaded m(demo_model_path(), setup);
        const Generation g = greedy_answer(m.session, some_ids(n), {});
        CHECK(g.finish == Finish::context);
        CHECK(g.ids.size() == 21 - n);  // the last one is picked, and not fed
        CHECK(m.session.length() == 20);
        CHECK(g.prompt.tokens == n);
        CHECK(g.decode.tokens == 20 - n);
    }
    Loaded m(demo_model_path(), setup);
    try {
        greedy_answer(m.session, some_ids(21), {});
        FAIL("21 tokens in 20");
    } catch (const Error& error) {
        CHECK(error.fault() == Fault::refused);
        CHECK(std::string(error.what()).find("21 tokens") != std::string::npos);
        CHECK(std::string(error.what()).find("room for 20") != std::string::npos);
    }
    CHECK(m.session.length() == 0);
}

TEST_CASE("answers: both phases count their tokens and the bytes that they moved") {
    Loaded m(demo_model_path());
    const Generation g = greedy_answer(m.session, some_ids(100), {.max_tokens = 5, .stop_ids = {}});
    CHECK(g.prompt.tokens == 100);
    CHECK(g.decode.tokens == 4);
    CHECK(g.prompt.bytes + g.decode.bytes == m.session.bytes_moved());
    CHECK(g.decode.bytes_per_token() > 20e6);  // all weights of 11 million in two bytes each
    CHECK(g.prompt.seconds > 0);
    CHECK(g.decode.seconds > 0);
    CHECK(g.last_logits.size() == m.model.config.vocab);
}

TEST_CASE("answers: an interrupt ends a prompt between pieces and an answer between tokens") {
    std::atomic<bool> interrupt{false};
    Loaded m(demo_model_path());
    Sampler sampler({.temperature = 0});
    const auto stop_after = [&](size_t tokens) {
        return [&interrupt, tokens](size_t done, size_t) { interrupt = done >= tokens; };
    };
    const Generation prompt_cut =
        generate(m.session, some_ids(200), sampler, nullptr, {}, {}, stop_after(128), interrupt);
    CHECK(prompt_cut.finish == Finish::interrupted);
    CHECK(prompt_cut.ids.empty());
    CHECK(prompt_cut.prompt.tokens == 128);
    CHECK(m.session.length() == 128);

    interrupt = false;
    const Generation cut = generate(
        m.session, some_ids(10), sampler, nullptr, {},
        [&](const GeneratedToken&) { interrupt = true; }, {}, interrupt);
    CHECK(cut.finish == Finish::interrupted);
    CHECK(cut.ids.size() == 2);
}

TEST_CASE("answers: a prompt fed in two calls that meet on the grid has the bits of one call") {
    const auto ids = some_ids(150);
    Loaded whole(demo_model_path());
    const auto want = feed_prompt(whole.session, ids, {}, kNever);
    for (size_t at : {64, 128}) {
        Loaded m(demo_model_path());
        feed_prompt(m.session, std::span(ids).first(at), {}, kNever);
        CHECK(feed_prompt(m.session, std::span(ids).subspan(at), {}, kNever) == want);
    }
}

TEST_CASE("answers: perplexity of the evaluation text is the golden one") {
    const Json& eval = golden()["eval"];
    auto ids = demo_tokenizer().encode(read_file(demo_model_path() + "/eval.txt"));
    REQUIRE(ids.size() >= eval["tokens"].get<size_t>());
    ids.resize(eval["tokens"].get<size_t>());  // as many as the model's context holds
    const std::vector<int32_t> first = eval["first_ids"];
    REQUIRE(std::equal(first.begin(), first.end(), ids.begin()));
    Setup setup;
    setup.max_seq = 2048;
    Loaded m(demo_model_path(), setup);
    const auto nll = negative_log_likelihoods(m.session, ids);
    REQUIRE(nll.size() == eval["predicted"].get<size_t>());

    const double want = eval["perplexity"], got = std::exp(mean(nll));
    MESSAGE("perplexity " << got << ", golden " << want);
    CHECK(std::abs(got / want - 1) < 1e-3);
    const std::vector<double> blocks = eval["mean_nll_by_256"];
    for (size_t b = 0; b < blocks.size(); ++b) {
        CAPTURE(b);
        const auto block =
            std::span(nll).subspan(b * 256, std::min<size_t>(256, nll.size() - b * 256));
        CHECK(std::abs(mean(block) - blocks[b]) < 1e-3);
    }
}

TEST_CASE("answers: perplexity needs two tokens") {
    Loaded m(demo_model_path());
    CHECK_THROWS_WITH_AS(negative_log_likelihoods(m.session, some_ids(1)),
                         doctest::Contains("has 1 tokens"), Error);
    CHECK(negative_log_likelihoods(m.session, some_ids(2)).size() == 1);
}
