#include "libcore/run/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "libcore/base/error.h"

using namespace hf;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Everything a pick depends on.
struct Situation {
    std::vector<float> logits;
    SamplingOptions options;
    std::vector<bool> known;  // empty: all
    std::vector<int32_t> prompt, answer;
};

int32_t pick_after(const Situation& s) {
    Sampler sampler(s.options, s.known);
    sampler.see_prompt(s.prompt);
    for (int32_t id : s.answer) {  // logits that leave no choice put an id into the answer
        std::vector<float> forced(s.logits.size(), -kInfinity);
        forced[size_t(id)] = 0;
        REQUIRE(sampler.pick(forced) == id);
    }
    return sampler.pick(s.logits);
}

/// The same, written from the description alone: full sorts, long double, no state.
int32_t slow_pick(const Situation& s) {
    struct Row {
        int32_t id;
        float logit;
        long double p;
    };
    std::vector<Row> rows;
    for (size_t i = 0; i < s.logits.size(); ++i) {
        const int32_t id = int32_t(i);
        float logit = s.logits[i];
        const auto times = std::count(s.answer.begin(), s.answer.end(), id);
        if (times > 0 || std::count(s.prompt.begin(), s.prompt.end(), id) > 0)
            logit = logit > 0 ? logit / s.options.repetition_penalty
                              : logit * s.options.repetition_penalty;
        if (times > 0)
            logit -= s.options.presence_penalty + float(times) * s.options.frequency_penalty;
        if (s.known.empty() || s.known[i]) rows.push_back({id, logit, 0});
    }
    const auto by_logit = [](const Row& a, const Row& b) {
        return std::pair(-a.logit, a.id) < std::pair(-b.logit, b.id);
    };
    const auto sorted = [&] {
        auto copy = rows;
        std::sort(copy.begin(), copy.end(), by_logit);
        return copy;
    };
    if (s.options.temperature == 0) return sorted()[0].id;

    const bool narrows = s.options.top_k > 0 || s.options.top_p < 1 || s.options.min_p > 0;
    if (narrows) rows = sorted();
    if (s.options.top_k > 0 && rows.size() > s.options.top_k) rows.resize(s.options.top_k);
    const auto renormalise = [&] {
        long double sum = 0;
        for (const Row& r : rows) sum += r.p;
        for (Row& r : rows) r.p /= sum;
    };
    const float largest = std::min_element(rows.begin(), rows.end(), by_logit)->logit;
    for (Row& r : rows) r.p = std::exp(((long double)(r.logit) - largest) / s.options.temperature);
    renormalise();
    if (s.options.top_p < 1) {
        long double sum = 0;
        size_t keep = 0;
        while (keep < rows.size() && sum < s.options.top_p) sum += rows[keep++].p;
        rows.resize(keep);
        renormalise();
    }
    if (s.options.min_p > 0) {
        const long double bar = s.options.min_p * rows[0].p;
        std::erase_if(rows, [&](const Row& r) { return r.p < bar; });
        renormalise();
    }
    Random random(s.options.seed);
    for (size_t i = 0; i < s.answer.size(); ++i) random.next();  // one number per token so far
    const double u = random.uniform();
    long double sum = 0;
    for (const Row& r : rows)
        if ((sum += r.p) > u) return r.id;
    return rows.back().id;
}

/// Ids that come up in 1000 draws, each with how often.
std::map<int32_t, int> draws(const std::vector<float>& logits, SamplingOptions options) {
    Sampler sampler(options);
    std::map<int32_t, int> count;
    for (int i = 0; i < 1000; ++i) ++count[sampler.pick(logits)];
    return count;
}

std::set<int32_t> drawn_ids(const std::vector<float>& logits, const SamplingOptions& options) {
    std::set<int32_t> ids;
    for (const auto& [id, times] : draws(logits, options)) ids.insert(id);
    return ids;
}

/// Logits whose softmax is these probabilities.
std::vector<float> logs(std::initializer_list<double> probabilities) {
    std::vector<float> logits;
    for (double p : probabilities) logits.push_back(float(std::log(p)));
    return logits;
}

}  // namespace

TEST_CASE("random: the numbers are those of SplitMix64") {
    Random random(1234567);  // as published with the algorithm's test vectors
    CHECK(random.next() == 6457827717110365317u);
    CHECK(random.next() == 3203168211198807973u);
    CHECK(random.next() == 9817491932198370423u);
    for (int i = 0; i < 1000; ++i) {
        const double u = random.uniform();
        CHECK((u >= 0 && u < 1));
    }
}

TEST_CASE("sampler: temperature 0 takes the largest logit, the lowest id among equals") {
    const SamplingOptions greedy{.temperature = 0};
    CHECK(pick_after({{1, 3, 3, 2}, greedy, {}, {}, {}}) == 1);
    CHECK(pick_after({{-kInfinity, -5, -kInfinity}, greedy, {}, {}, {}}) == 1);
    CHECK(pick_after({{9, 3, 3, 2}, greedy, {false, true, true, true}, {}, {}}) == 1);
}

TEST_CASE("sampler: penalties move a tie the way their names say") {
    SamplingOptions o{.temperature = 0};
    SUBCASE("repetition counts the prompt, and pushes negative logits down too") {
        o.repetition_penalty = 2;
        CHECK(pick_after({{4, 3}, o, {}, {0}, {}}) == 1);
        CHECK(pick_after({{-2, -3}, o, {}, {0}, {}}) == 1);
        CHECK(pick_after({{4, 1}, o, {}, {0, 0, 0}, {}}) == 0);  // once, however often it was seen
    }
    SUBCASE("presence counts the answer only, and once") {
        o.presence_penalty = 1;
        CHECK(pick_after({{4, 3.5}, o, {}, {0}, {}}) == 0);
        CHECK(pick_after({{4, 3.5}, o, {}, {}, {0}}) == 1);
        CHECK(pick_after({{4, 2.5}, o, {}, {}, {0, 0, 0}}) == 0);
    }
    SUBCASE("frequency counts each time in the answer") {
        o.frequency_penalty = 1;
        CHECK(pick_after({{4, 1.5}, o, {}, {0, 0, 0}, {0, 0}}) == 0);
        CHECK(pick_after({{4, 1.5}, o, {}, {}, {0, 0, 0}}) == 1);
    }
}

TEST_CASE("sampler: top_k, top_p and min_p keep exactly the tokens they promise") {
    const auto logits = logs({0.1, 0.4, 0.3, 0.15, 0.05});
    CHECK(drawn_ids(logits, {}) == std::set{0, 1, 2, 3, 4});
    CHECK(drawn_ids(logits, {.top_k = 2}) == std::set{1, 2});
    CHECK(drawn_ids(logits, {.top_k = 99}) == std::set{0, 1, 2, 3, 4});
    CHECK(drawn_ids(logits, {.top_p = 0.39f}) == std::set{1});
    CHECK(drawn_ids(logits, {.top_p = 0.69f}) == std::set{1, 2});
    CHECK(drawn_ids(logits, {.top_p = 0.71f}) == std::set{1, 2, 3});
    CHECK(drawn_ids(logits, {.top_p = 1e-6f}) == std::set{1});
    CHECK(drawn_ids(logits, {.min_p = 0.74f}) == std::set{1, 2});
    CHECK(drawn_ids(logits, {.min_p = 0.76f}) == std::set{1});
    CHECK(drawn_ids(logits, {.min_p = 1}) == std::set{1});
    // top_p counts within what top_k left: 0.4 of 0.7 is 0.57
    CHECK(drawn_ids(logits, {.top_k = 2, .top_p = 0.56f}) == std::set{1});
    CHECK(drawn_ids(logits, {.top_k = 2, .top_p = 0.58f}) == std::set{1, 2});
    // temperature comes before them: at 0.1 the largest has 0.4^10 / (0.4^10 + 0.3^10 + ..) = 0.95
    CHECK(drawn_ids(logits, {.temperature = 0.1f, .top_p = 0.9f}) == std::set{1});
    CHECK(drawn_ids(logits, {.top_k = 1}) == std::set{1});
    CHECK(drawn_ids({2, 2, 2, 2}, {.top_k = 2}) == std::set{0, 1});  // lower ids first
}

TEST_CASE("sampler: tokens come up as often as their probabilities say") {
    const auto count = draws(logs({0.5, 0.25, 0.25}), {.seed = 5});
    CHECK(std::abs(count.at(0) - 500) < 64);  // four standard deviations of 1000 draws
    CHECK(std::abs(count.at(1) - 250) < 55);
    CHECK(std::abs(count.at(2) - 250) < 55);
}

TEST_CASE("sampler: extreme temperatures and logits stay in order") {
    CHECK(drawn_ids({1, 2, 3}, {.temperature = 1e-30f}) == std::set{2});
    CHECK(drawn_ids({-3e38f, 3e38f, 0}, {}) == std::set{1});
    CHECK(drawn_ids({0, -kInfinity, 0}, {.temperature = 1e6f}) == std::set{0, 2});
    CHECK(drawn_ids({0, -kInfinity}, {.top_k = 2, .top_p = 0.5f, .min_p = 0.1f}) == std::set{0});
}

TEST_CASE("sampler: unknown ids are never picked") {
    const std::vector<float> logits = {50, 0, 50, 1};
    Sampler sampler({.seed = 3}, {false, true, false, true});
    for (int i = 0; i < 200; ++i) CHECK(sampler.pick(logits) % 2 == 1);
}

TEST_CASE("sampler: logits that are no numbers are an error that names the token") {
    for (float bad : {std::nanf(""), kInfinity})
        for (float temperature : {0.0f, 1.0f}) {
            Sampler sampler({.temperature = temperature});
            CHECK_THROWS_WITH_AS(sampler.pick(std::vector<float>{1, 2, bad}),
                                 doctest::Contains("token 2"), Error);
        }
    Sampler masked({.temperature = 0}, {true, false});
    CHECK(masked.pick(std::vector<float>{1, kInfinity}) == 0);  // nobody asked for that one
    Sampler nothing({}, {false, false});
    CHECK_THROWS_AS(nothing.pick(std::vector<float>{1, 2}), Error);
    Sampler impossible({});
    CHECK_THROWS_AS(impossible.pick(std::vector<float>{-kInfinity}), Error);
}

TEST_CASE("sampler: it agrees with a slow version written from the description") {
    Random random(99);
    const auto below = [&](uint64_t n) { return random.next() % n; };
    for (int round = 0; round < 2000; ++round) {
        CAPTURE(round);
        Situation s;
        const size_t vocab = 1 + below(round % 4 == 0 ? 1500 : 60);  // blocks of 64
        for (size_t i = 0; i < vocab; ++i)  // coarse values, so that equal logits are common
            s.logits.push_back(float(int(below(41)) - 20) * 0.25f);
        const auto ids = [&](uint64_t most) {
            std::vector<int32_t> list(below(most + 1));
            for (int32_t& id : list) id = int32_t(below(vocab));
            return list;
        };
        s.prompt = ids(6), s.answer = ids(6);
        if (below(2)) {
            s.known.assign(vocab, true);
            for (size_t i = 0; i < vocab; ++i) s.known[i] = below(4) > 0;
            for (int32_t id : s.answer) s.known[size_t(id)] = true;
            s.known[0] = true;
        }
        const float temperatures[] = {0, 0.3f, 0.7f, 1, 2};
        const float ps[] = {1, 1, 0.95f, 0.8f, 0.31f};
        s.options.temperature = temperatures[below(5)];
        s.options.top_k = below(2) ? uint32_t(below(70)) : 0;
        s.options.top_p = ps[below(5)];
        s.options.min_p = below(2) ? 0 : 0.07f;
        s.options.repetition_penalty = below(2) ? 1 : 1.3f;
        s.options.presence_penalty = below(2) ? 0 : 1.5f;
        s.options.frequency_penalty = below(2) ? 0 : -0.3f;
        s.options.seed = random.next();
        CHECK(pick_after(s) == slow_pick(s));
    }
}
