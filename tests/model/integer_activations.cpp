// Models whose products take integer activations: the same bits at every level, and the answers of
// float32 wherever these are clear.
#include <doctest/doctest.h>

#include "tests/support/data.h"
#include "tests/support/place_by_hand.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;

namespace {

struct Case {
    std::string model, file;  // folder of the prompt; the weights
    std::vector<int32_t> prompt() const {
        return read_values<int32_t>(data_path("models/" + model + "/input_ids.i32"));
    }
};

const std::vector<Case> kCases = {{"tiny_llama", "tiny_llama.q4_0"},
                                  {"tiny_qwen35_a", "tiny_qwen35_a.q8_0"},
                                  {"tiny_qwen35_b", "tiny_qwen35_b.q8_0"},
                                  {"tiny_qwen35_b", "tiny_qwen35_b.q4_k_m"}};

Setup with(cpu::Activations activations) {
    Setup setup;
    setup.activations = activations;
    return setup;
}

/// Logits of the prompt, of 16 greedy tokens, and of the same tokens again behind them.
std::vector<float> answer(const Case& c, const Setup& setup, std::vector<int32_t>* ids = nullptr) {
    Loaded m(data_path("gguf/" + c.file + ".gguf"), setup);
    const auto prompt = c.prompt();
    auto logits = run_ids(m.session, prompt, cut_every(prompt.size(), Session::kMaxTokens));
    const size_t vocab = m.model.config.vocab;
    const auto more = greedy(m.session, argmax(std::span(logits).last(vocab)), 16);
    const auto steps = run_ids(m.session, more, cut_every(more.size(), 1));
    logits.insert(logits.end(), steps.begin(), steps.end());
    if (ids) *ids = more;
    return logits;
}

}  // namespace

TEST_CASE("integer activations: levels and threads change no bit") {
    for (const Case& c : kCases)
        for (const cpu::Activations a : {cpu::Activations::i16, cpu::Activations::int8}) {
            CAPTURE(c.file);
            Setup setup = with(a);
            setup.level = cpu::Level::scalar;
            setup.threads = 1;
            const auto want = answer(c, setup);
            setup.threads = 3;
            for (size_t l = 0; l < cpu::kLevels; ++l) {
                setup.level = cpu::Level(l);
                CAPTURE(std::string(cpu::name(setup.level)));
                if (cpu::cpu_has(setup.level)) CHECK(answer(c, setup) == want);
            }
        }
}

TEST_CASE("integer activations: spilled layers give the bits of the resident model") {
    const Case c = {"tiny_llama", "tiny_llama.q4_0"};
    Setup setup = with(cpu::Activations::i16);
    const auto want = answer(c, setup);
    setup.lanes.poison_stale = true;
    for (const Exec exec : {Exec::device, Exec::cpu, Exec::split}) {
        setup.place = [exec](ModelPlan& plan) { place(plan, {.layers = 1, .exec = exec}); };
        CHECK(answer(c, setup) == want);
    }
}

TEST_CASE("integer activations: the greedy ids are the reference's wherever its choice is clear") {
    for (const Case& c : kCases) {
        const auto want = read_values<int32_t>(data_path("gguf/" + c.file + ".greedy.i32"));
        const auto margin = read_values<float>(data_path("gguf/" + c.file + ".greedy_margin.f32"));
        const auto logits = read_values<float>(data_path("gguf/" + c.file + ".logits.f32"));
        float error[2];
        for (const cpu::Activations a : {cpu::Activations::i16, cpu::Activations::int8}) {
            CAPTURE(c.file);
            std::vector<int32_t> got;
            const auto all = answer(c, with(a), &got);
            const float worst = worst_difference(std::span(all).first(logits.size()), logits);
            error[a == cpu::Activations::int8] = worst;
            size_t clear = 0;
            while (clear < got.size() && clear < want.size() && margin[clear] > 2 * worst) ++clear;
            MESSAGE(c.file << std::string(a == cpu::Activations::i16 ? " i16" : " int8")
                           << ": worst difference " << worst << ", " << clear << " clear ids");
            CHECK(std::equal(got.begin(), got.begin() + ptrdiff_t(clear), want.begin()));
        }
        CHECK(error[0] < error[1] / 20);
    }
}
