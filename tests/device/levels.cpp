// Ops with state give the same bits at every instruction level, and where that is promised in one
// pass or in many.
#include <doctest/doctest.h>

#include <string>

#include "tests/device/bench.h"

using namespace hf;
using namespace hf::test;

namespace {

/// Levels that this machine has.
std::vector<cpu::Level> levels() {
    std::vector<cpu::Level> all;
    for (size_t l = 0; l < cpu::kLevels; ++l)
        if (cpu::cpu_has(cpu::Level(l))) all.push_back(cpu::Level(l));
    return all;
}

/// Attention over 150 tokens in passes of `step`: six heads of 40 or 64 numbers, two key heads.
std::vector<float> attended(const std::string& kv, cpu::Level level, uint32_t step) {
    constexpr uint32_t kTokens = 150, kHeads = 6;
    StateSpec spec;
    spec.kv_layers = 1;
    spec.kv_heads = 2;
    spec.head_dim = kv == "q8" ? 64 : 40;
    SlotTable slots;
    const Slot q = slots.add("q", kHeads * spec.head_dim), k = slots.add("k", 2 * spec.head_dim),
               v = slots.add("v", 2 * spec.head_dim), out = slots.add("o", kHeads * spec.head_dim);
    Bench bench(spec, slots, kTokens, kv.c_str(), level);
    StepList list;
    list.kv_write(k, v, 0);
    list.attend(q, kHeads, 0, out);
    const auto in = random_floats(kTokens * (q.width + 2 * k.width), 41, -3, 3);
    std::vector<float> result;
    for (uint32_t at = 0; at < kTokens; at += step) {
        const Tokens t = bench.pass(at, std::min(step, kTokens - at));
        for (uint32_t i = 0; i < t.count; ++i) {
            const float* row = &in[(at + i) * (q.width + 2 * k.width)];
            put(t, q, i, row);
            put(t, k, i, row + q.width);
            put(t, v, i, row + q.width + k.width);
        }
        bench.run(list, t);
        result.insert(result.end(), t.row(out, 0), t.row(out, t.count));
    }
    return result;
}

/// Who makes a pass real: steps of their own, or the next pass.
enum class Commit { apart, on_the_way };

/// Convolution and delta rule over 100 tokens in passes of `step`, then their state.
std::vector<float> delta_ruled(cpu::Level level, uint32_t step, Commit how = Commit::apart) {
    constexpr uint32_t kTokens = 100, kHeads = 4, kTaps = 4;
    StateSpec spec;
    spec.delta_layers = 1;
    spec.key_heads = 2;
    spec.value_heads = kHeads;
    spec.key_dim = 36;
    spec.value_dim = 41;
    spec.conv_kernel = kTaps;
    const auto channels = uint32_t(spec.channels());
    SlotTable slots;
    const Slot m = slots.add("m", channels), qkv = slots.add("qkv", channels),
               g = slots.add("g", kHeads), beta = slots.add("beta", kHeads),
               out = slots.add("o", kHeads * spec.value_dim);
    Bench bench(spec, slots, kTokens, "f32", level);
    const auto taps = random_floats(channels * kTaps, 51);
    const Weight w = bench.weight({channels, kTaps}, taps);
    StepList forward, commit;
    forward.conv_silu(m, w, 0, qkv);
    forward.delta_norm_qk(qkv, 0);
    forward.delta_rule(qkv, g, beta, 0, out);
    forward.delta_keep(qkv, 0);
    commit.conv_commit(0);
    commit.delta_commit(0);

    const auto in = random_floats(kTokens * channels, 52),
               decays = random_floats(kTokens * kHeads, 53, -2, 0),
               betas = random_floats(kTokens * kHeads, 54, 0, 1);
    std::vector<float> result;
    for (uint32_t at = 0; at < kTokens; at += step) {
        Tokens t = bench.pass(at, std::min(step, kTokens - at));
        if (how == Commit::on_the_way && at > 0) t.commits = step;
        for (uint32_t i = 0; i < t.count; ++i) {
            put(t, m, i, &in[(at + i) * channels]);
            put(t, g, i, &decays[(at + i) * kHeads]);
            put(t, beta, i, &betas[(at + i) * kHeads]);
        }
        bench.run(forward, t);
        result.insert(result.end(), t.row(out, 0), t.row(out, t.count));
        if (how == Commit::apart || at + step >= kTokens) bench.run(commit, t);
    }
    const float* state = reinterpret_cast<const float*>(bench.state.data());
    result.insert(result.end(), state, state + bench.layout.recurrent_bytes / sizeof(float));
    return result;
}

}  // namespace

TEST_CASE("attend: the same bits at every level, in passes of any size, with every cache") {
    for (const KvType& kv : kv_types()) {
        const std::string name(kv.name);
        CAPTURE(name);
        const auto want = attended(name, cpu::Level::scalar, 1);
        for (const cpu::Level level : levels())
            for (const uint32_t step : {1u, 3u, 30u, 64u}) {
                CAPTURE(cpu::name(level));
                CAPTURE(step);
                CHECK((attended(name, level, step) == want));
            }
    }
}

TEST_CASE("convolution and delta rule: the same bits at every level, whoever commits") {
    for (const uint32_t step : {1u, 5u, 64u}) {
        CAPTURE(step);
        const auto want = delta_ruled(cpu::Level::scalar, step);
        for (const cpu::Level level : levels()) {
            CAPTURE(cpu::name(level));
            CHECK((delta_ruled(level, step) == want));
            CHECK((delta_ruled(level, step, Commit::on_the_way) == want));
        }
    }
}
