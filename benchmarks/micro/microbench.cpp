// hf-microbench: each function of the engine alone, under Google Benchmark. benchmarks/README.md.
#include <benchmark/benchmark.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "benchmarks/micro/arms.h"
#include "cpuexec/isa.h"
#include "cpuexec/topology.h"
#include "libcore/base/error.h"
#include "libcore/run/crosscheck_dots.h"

namespace hf::bench {
namespace {

constexpr Shape kShape{12288, 4096};
constexpr size_t kTokens[] = {2, 4, 8, 64};

/// Bytes of matrices that are walked in turn.
size_t wanted_bytes() {
    size_t bytes = 1'500'000'000;
    if (const char* text = std::getenv("HF_BENCH_BYTES")) {
        const char* const end = text + std::char_traits<char>::length(text);
        const auto [stop, error] = std::from_chars(text, end, bytes);
        if (error != std::errc() || stop != end)
            throw Error(fmt::format("HF_BENCH_BYTES is '{}', and should be a number", text),
                        Fault::usage);
    }
    return bytes;
}

/// What benchmarks share. Matrices are made when the first benchmark of a format runs.
struct Stock {
    const Matrices& matrices(const Codec& codec) {
        if (!arena) arena = std::make_unique<Arena>(wanted_bytes(), /*has_huge_pages=*/true);
        if (!current || &current->codec() != &codec)
            current = std::make_unique<Matrices>(codec, kShape, *arena);
        return *current;
    }
    cpu::ThreadPool& pool(unsigned threads) {
        if (!team || team->size() != threads) team = std::make_unique<cpu::ThreadPool>(threads);
        return *team;
    }
    std::unique_ptr<Arena> arena;
    std::unique_ptr<Matrices> current;
    std::unique_ptr<cpu::ThreadPool> team;
};

using MakeArm = std::function<Arm(Stock&)>;

void add(const std::string& name, Stock& stock, MakeArm make) {
    benchmark::RegisterBenchmark(name.c_str(), [&stock, make](benchmark::State& state) {
        const Arm arm = make(stock);
        size_t turn = 0;
        for (auto _ : state) arm.run(turn++);
        const auto per_second = [&state](uint64_t of_one) {
            return benchmark::Counter(double(of_one) * double(state.iterations()),
                                      benchmark::Counter::kIsRate);
        };
        state.counters["bytes"] = per_second(arm.bytes);
        if (arm.operations > 0) state.counters["operations"] = per_second(arm.operations);
    })->UseRealTime();
}

void add_reads(Stock& stock, unsigned threads) {
    const cpu::Level level = cpu::detect_level();
    const Codec& codec = *codec_by_name("q8_0");  // any will do
    add(fmt::format("read/sequential/{}", threads), stock, [=, &codec](Stock& s) {
        return sequential_read(s.matrices(codec), level, s.pool(threads));
    });
    add(fmt::format("read/four streams/{}", threads), stock, [=, &codec](Stock& s) {
        return four_stream_read(s.matrices(codec), level, s.pool(threads));
    });
}

void add_products(Stock& stock, const Codec& codec, const OwnDot& own, unsigned threads) {
    if (!cpu::cpu_has(own.level)) return;
    const std::string where = fmt::format("{}/{}/{}/{}", codec.name, name(own.activations),
                                          cpu::name(own.level), threads);
    const auto make = [=, &codec](size_t tokens) {
        return [=, &codec](Stock& s) {
            return products(s.matrices(codec), own.level, own.activations, tokens, s.pool(threads));
        };
    };
    add("gemv/" + where, stock, make(1));
    for (size_t tokens : kTokens)
        add(fmt::format("gemm/{}/{}", where, tokens), stock, make(tokens));
}

void add_dispatch(Stock& stock, unsigned threads) {
    benchmark::RegisterBenchmark(fmt::format("pool/{}", threads).c_str(),
                                 [=, &stock](benchmark::State& state) {
                                     cpu::ThreadPool& pool = stock.pool(threads);
                                     for (auto _ : state) dispatch_nothing(pool);
                                 })
        ->UseRealTime();
}

int run(int argc, char** argv) {
    Stock stock;
    const std::set<unsigned> teams = {1, cpu::default_threads()};
    for (unsigned threads : teams) add_dispatch(stock, threads);
    for (unsigned threads : teams) add_reads(stock, threads);
    for (const Codec& codec : codecs())
        for (const OwnDot& own : own_dots(codec))
            for (unsigned threads : teams) add_products(stock, codec, own, threads);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return int(Fault::usage);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}

}  // namespace
}  // namespace hf::bench

int main(int argc, char** argv) {
    try {
        return hf::bench::run(argc, argv);
    } catch (const hf::Error& error) {
        std::fprintf(stderr, "hf-microbench: error: %s\n", error.what());
        return int(error.fault());
    }
}
