// Dots of every format at every level: same bits everywhere, and close to the truth.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "cpuexec/isa.h"
#include "tests/unit/dot_matrices.h"

namespace hf {
namespace {

using cpu::Activations;
using cpu::Level;

constexpr size_t kRows = 11, kMostColumns = 67;

/// A weight, its columns, and the scalar result: y[t * kRows + r], one column at a time.
struct Case {
    Case(const Codec& codec, size_t cols)
        : W(codec, kRows, cols, /*gap=*/3, /*seed=*/cols),
          stride(W.view.cols + 5),
          x(random_columns(W.view.cols, kMostColumns, stride, /*seed=*/cols + 1)),
          y(kMostColumns * kRows) {
        const cpu::Dot dot = codec.cpu.dot[0][size_t(Activations::f32)];
        for (size_t t = 0; t < kMostColumns; ++t)
            dot(W.view, 0, kRows, {&x[t * stride], stride, 1}, &y[t * kRows], kRows);
    }
    OddMatrix W;
    size_t stride;
    std::vector<float> x, y;
};

TEST_CASE("f32 dots give the same bits at every level, for one column and for many") {
    for (const Codec& codec : codecs()) {
        CAPTURE(codec.name);
        for (size_t cols : sizes_of(codec)) {
            CAPTURE(cols);
            const Case c(codec, cols);
            for (size_t l = 0; l < cpu::kLevels; ++l) {
                const cpu::Dot dot = codec.cpu.dot[l][size_t(Activations::f32)];
                if (!dot || !cpu::cpu_has(Level(l))) continue;
                CAPTURE(cpu::name(Level(l)));
                for (size_t count : {1, 2, 3, 4, 5, 8, 9, 64, 67}) {
                    if (Level(l) == Level::scalar && count > 9) continue;  // slow, in eights
                    CAPTURE(count);
                    for (auto [r0, r1] : {std::pair<size_t, size_t>{0, kRows},
                                          {0, 1},
                                          {3, 8},
                                          {kRows - 1, kRows},
                                          {2, 2}}) {
                        // The columns used are the last ones, so that they end with the vector
                        const size_t first = kMostColumns - count;
                        std::vector<float> y(count * kRows, NAN);
                        dot(c.W.view, r0, r1, {&c.x[first * c.stride], c.stride, count},
                            y.data() + r0, kRows);
                        size_t wrong = 0;
                        for (size_t t = 0; t < count; ++t)
                            for (size_t r = 0; r < kRows; ++r) {
                                const float got = y[t * kRows + r];
                                const bool asked = r >= r0 && r < r1;
                                wrong += asked ? !same_bits(got, c.y[(first + t) * kRows + r])
                                               : !std::isnan(got);
                            }
                        CHECK(wrong == 0);
                    }
                }
            }
        }
    }
}

TEST_CASE("f32 dots are as close to the sum in double precision as their order allows") {
    for (const Codec& codec : codecs()) {
        double worst = 0;  // error as a share of what is allowed
        for (size_t cols : sizes_of(codec)) {
            const Case c(codec, cols);
            // A lane takes cols / 16 roundings, the fold four
            const double allowed = (std::ceil(double(c.W.view.cols) / 16) + 4) * 0x1p-24;
            std::vector<float> w(c.W.view.cols);
            for (size_t r = 0; r < kRows; ++r) {
                codec.cpu.decode_row(c.W.view, r, w.data());
                for (size_t t = 0; t < kMostColumns; t += 9) {
                    double sum = 0, magnitude = 0;
                    for (size_t i = 0; i < w.size(); ++i) {
                        const double product = double(w[i]) * double(c.x[t * c.stride + i]);
                        sum += product;
                        magnitude += std::fabs(product);
                    }
                    const double error = std::fabs(double(c.y[t * kRows + r]) - sum);
                    worst = std::max(worst, error / (allowed * magnitude));
                }
            }
        }
        MESSAGE(fmt::format("{}: worst error {:.3f} of the allowed", codec.name, worst));
        CHECK(worst <= 1);
    }
}

TEST_CASE("only the padding of a row's last vector is left out: infinite neighbours do no harm") {
    for (const Codec& codec : codecs()) {
        if (cols_unit(codec) != 1 || activation_cols(codec, 7) != 7) continue;
        CAPTURE(codec.name);
        Case c(codec, /*cols=*/7);
        for (size_t l = 0; l < cpu::kLevels; ++l) {
            const cpu::Dot dot = codec.cpu.dot[l][size_t(Activations::f32)];
            if (!dot || !cpu::cpu_has(Level(l))) continue;
            for (size_t t = 0; t + 1 < kMostColumns; ++t)  // the gap behind a column
                std::fill_n(&c.x[t * c.stride + 7], c.stride - 7, INFINITY);
            std::vector<float> y(2 * kRows);
            dot(c.W.view, 0, kRows, {c.x.data(), c.stride, 2}, y.data(), kRows);
            CHECK(std::memcmp(y.data(), c.y.data(), y.size() * sizeof(float)) == 0);
        }
    }
}

template <int which>
void fake_dot(const cpu::WeightView&, size_t, size_t, const cpu::Columns&, float*, size_t) {}

TEST_CASE("a missing dot is served by the next lower level, but avx512vnni never by avxvnni") {
    cpu::CpuOps ops{};
    const auto pick = [&ops](Level level) { return pick_dot(ops, level, Activations::int8); };
    CHECK(!pick(Level::amx));
    ops.dot[size_t(Level::scalar)][size_t(Activations::int8)] = fake_dot<0>;
    ops.dot[size_t(Level::avxvnni)][size_t(Activations::int8)] = fake_dot<2>;
    CHECK((pick(Level::scalar) == fake_dot<0>));
    CHECK((pick(Level::avx2) == fake_dot<0>));
    CHECK((pick(Level::avxvnni) == fake_dot<2>));
    CHECK((pick(Level::avx512vnni) == fake_dot<0>));
    CHECK((pick(Level::amx) == fake_dot<0>));
    CHECK(!pick_dot(ops, Level::amx, Activations::i16));
}

TEST_CASE("levels are detected as the compiler's runtime sees the CPU") {
    CHECK(cpu::cpu_has(Level::scalar));
    CHECK(cpu::cpu_has(Level::avx2) ==
          (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")));
    CHECK(cpu::cpu_has(Level::avx512vnni) ==
          (cpu::cpu_has(Level::avx2) && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vnni")));
    CHECK(cpu::cpu_has(cpu::detect_level()));
    for (size_t l = size_t(cpu::detect_level()) + 1; l < cpu::kLevels; ++l)
        CHECK(!cpu::cpu_has(Level(l)));
}

TEST_CASE("levels have names that are read back") {
    for (size_t l = 0; l < cpu::kLevels; ++l)
        CHECK(cpu::parse_level(cpu::name(Level(l))) == Level(l));
    for (const char* other : {"", "AVX2", "avx", "avx512", "auto"})
        CHECK(cpu::parse_level(other) == std::nullopt);
}

}  // namespace
}  // namespace hf
