// What the benchmarks measure with: memory that is really different, reads that leave nothing out,
// windows and their statistics.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "benchmarks/micro/plain_read.h"
#include "benchmarks/micro/windows.h"
#include "cpuexec/isa.h"

namespace hf::bench {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("plain reads take every byte, at every level, from any address") {
    std::vector<std::byte> memory(1 + 6 * 1024);
    std::mt19937_64 random(1);
    for (std::byte& b : memory) b = std::byte(random());
    uint64_t expected = 0;
    for (size_t at = 1; at < memory.size(); at += 8) {
        uint64_t word;
        std::memcpy(&word, &memory[at], 8);
        expected ^= word;
    }
    for (size_t l = 0; l < cpu::kLevels; ++l) {
        if (!cpu::cpu_has(cpu::Level(l))) continue;
        CAPTURE(l);
        CHECK(read_sequential(cpu::Level(l), &memory[1], memory.size() - 1) == expected);
        CHECK(read_four_streams(cpu::Level(l), &memory[1], memory.size() - 1) == expected);
    }
}

TEST_CASE("matrices are different memory with the same weights, which are numbers") {
    const Arena arena(2 << 20, /*has_huge_pages=*/false);
    const Shape shape{130, 512};
    for (const Codec& codec : codecs()) {
        CAPTURE(codec.name);
        const Matrices matrices(codec, shape, arena);
        REQUIRE(matrices.count() >= 2);
        CHECK(matrices.count() * matrices.bytes() <= arena.bytes().size());
        CHECK(matrices.tensor(1) >= matrices.tensor(0) + matrices.bytes());
        CHECK(matrices.tensor(matrices.count()) == matrices.tensor(0));
        const size_t last = matrices.count() - 1;
        CHECK(std::memcmp(matrices.tensor(0), matrices.tensor(last), matrices.bytes()) == 0);
        const cpu::WeightView W = matrices.view(last);
        std::vector<float> row(W.cols);
        for (size_t r : {0, 63, 64, 129}) {
            codec.cpu.decode_row(W, r, row.data());
            float largest = 0;
            for (float w : row) largest = std::isnan(w) ? w : std::max(largest, std::fabs(w));
            CHECK(largest > 0x1p-7f);
            CHECK(largest < 2000);
        }
    }
}

TEST_CASE("a window is the speed of its undisturbed dispatches, if most of them are") {
    const std::vector<Dispatch> calm = {{0.5, false}, {9, true}, {1.5, false}};
    const Window w = window_of(calm, 1'000'000'000);
    CHECK(w.gb_per_s == 1);
    CHECK(w.kept == 2);
    CHECK(w.dropped == 1);
    const std::vector<Dispatch> wild = {{0.5, false}, {9, true}, {9, true}};
    CHECK(std::isnan(window_of(wild, 1).gb_per_s));
    CHECK(std::isnan(window_of({}, 1).gb_per_s));
}

TEST_CASE("a spread leaves out what was lost; ratios are of the same round") {
    const Spread odd = spread_of({3, kNan, 1, 2});
    CHECK(odd.median == 2);
    CHECK(odd.lowest == 1);
    CHECK(odd.highest == 3);
    CHECK(odd.count == 3);
    CHECK(spread_of({4, 1, 2, 9}).median == 3);
    CHECK(spread_of({kNan}).count == 0);
    const std::vector<Window> a = {{2, 1, 0}, {9, 1, 0}, {kNan, 0, 1}};
    const std::vector<Window> b = {{4, 1, 0}, {10, 1, 0}, {1, 1, 0}};
    const Spread ratio = ratio_of(a, b);
    CHECK(ratio.count == 2);
    CHECK(ratio.lowest == 0.5);
    CHECK(ratio.highest == 0.9);
}

TEST_CASE("arms take turns, and every dispatch has another matrix") {
    std::vector<std::pair<char, size_t>> log;
    const auto arm = [&log](char name) {
        return Arm{std::string(1, name), 1000, 0,
                   [&log, name](size_t turn) { log.emplace_back(name, turn); }};
    };
    const std::vector<Arm> arms = {arm('a'), arm('b')};
    const auto windows = measure_in_turns(arms, /*wanted=*/2, /*dispatches=*/3);
    REQUIRE(windows.size() == 2);
    CHECK(windows[0].size() >= 2);
    CHECK(windows[0].size() == windows[1].size());
    CHECK(log.size() == windows[0].size() * 2 * 4);
    for (size_t i = 0; i < log.size(); ++i) {
        CHECK(log[i].first == (i / 4 % 2 == 0 ? 'a' : 'b'));
        CHECK(log[i].second == i);
    }
}

TEST_CASE("reads and products of every format run on any number of threads") {
    const Arena arena(4 << 20, /*has_huge_pages=*/false);
    for (unsigned threads : {1u, 3u}) {
        cpu::ThreadPool pool(threads);
        for (const Codec& codec : codecs()) {
            const Matrices matrices(codec, {500, 256}, arena);
            const Arm read = sequential_read(matrices, cpu::Level::scalar, pool);
            CHECK(read.bytes <= matrices.bytes());
            // each part leaves less than a KiB out
            CHECK(read.bytes + threads * kPartsPerThread * 1024 > matrices.bytes());
            read.run(1);
            four_stream_read(matrices, cpu::Level::scalar, pool).run(2);
            const Arm arm = products(matrices, cpu::Level::scalar, cpu::Activations::f32, 3, pool);
            CHECK(arm.bytes == matrices.bytes());
            CHECK(arm.operations == 2 * 500 * 256 * 3);
            CHECK(arm.name == "f32/scalar");
            arm.run(3);
        }
        dispatch_nothing(pool);
    }
}

}  // namespace
}  // namespace hf::bench
