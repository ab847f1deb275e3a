// The bundled model against its golden file, which Hugging Face's classes wrote (float32, CPU).
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/data.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;
using nlohmann::json;

namespace {

json golden_prompts() {
    const json golden = json::parse(read_file(demo_model_path() + "/golden.json"));
    REQUIRE(golden.at("prompts").size() >= 6);
    return golden.at("prompts");
}

/// The ids that must be equal: all, or those up to and with the stop token of a chat.
std::vector<int32_t> answer_of(const json& prompt) {
    auto ids = prompt.at("greedy_ids").get<std::vector<int32_t>>();
    if (!prompt.at("stop_index").is_null()) ids.resize(prompt.at("stop_index").get<size_t>() + 1);
    return ids;
}

}  // namespace

TEST_CASE("demo: every golden prompt gets its greedy answer and its largest logits") {
    Loaded m(demo_model_path());
    const size_t vocab = m.model.config.vocab;
    const Checkpoint empty = m.session.checkpoint();
    for (const json& prompt : golden_prompts()) {
        CAPTURE(prompt.at("text").get<std::string>());
        m.session.restore(empty);
        const auto ids = prompt.at("input_ids").get<std::vector<int32_t>>();
        const auto logits = run_ids(m.session, ids, cut_every(ids.size(), Session::kMaxTokens));
        const auto last = std::span(logits).last(vocab);
        float worst = 0;
        for (const json& top : prompt.at("last_logits_top10"))
            worst = std::max(worst, std::abs(last[top[0].get<size_t>()] - top[1].get<float>()));
        MESSAGE("worst of the ten largest logits: " << worst);
        CHECK(worst <= 1e-3f);

        const auto want = answer_of(prompt);
        CHECK(greedy(m.session, argmax(last), want.size()) == want);
    }
}

TEST_CASE(
    "demo: a prompt in one piece, in pieces at grid points, and from a checkpoint answers alike") {
    Loaded m(demo_model_path());
    const Checkpoint empty = m.session.checkpoint();
    std::vector<int32_t> ids;  // three prompts in a row: longer than two chunks
    for (const json& prompt : golden_prompts())
        for (const char* part : {"input_ids", "greedy_ids"})
            for (const json& id : prompt.at(part)) ids.push_back(id.get<int32_t>());
    ids.resize(200);
    const auto answer = [&](std::span<const int32_t> rest, uint32_t piece) {
        const auto logits = run_ids(m.session, rest, cut_every(rest.size(), piece));
        return greedy(m.session, argmax(std::span(logits).last(m.model.config.vocab)), 40);
    };
    const auto want = answer(ids, 64);

    m.session.restore(empty);
    run_ids(m.session, ids, cut_every(128, 64));
    const Checkpoint at_grid = m.session.checkpoint();
    CHECK(answer(std::span(ids).subspan(128), 64) == want);

    m.session.restore(at_grid);
    CHECK(answer(std::span(ids).subspan(128), 64) == want);
}
