// Dots of every format at every level: same bits everywhere, and close to the truth.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "cpuexec/isa.h"
#include "libcore/codec/codec.h"

namespace hf {
namespace {

using cpu::Activations;
using cpu::Level;

using Random = std::mt19937_64;
using Memory = std::unique_ptr<std::byte, void (*)(void*)>;

/// Memory for `bytes` at an odd address, which ends with the allocation.
Memory odd_memory(size_t bytes) {
    return {static_cast<std::byte*>(std::malloc(bytes + 1)), &std::free};
}

/// From 2^-6 to 1, of any sign.
uint16_t random_scale(Random& random) {
    return uint16_t(0x2400 + random() % 0x1800 + random() % 2 * 0x8000);
}

void fill(std::byte* out, size_t bytes, Random& random) {
    for (size_t i = 0; i < bytes; ++i) out[i] = std::byte(random());
}

void fill_scales(std::byte* out, size_t count, Random& random) {
    for (size_t i = 0; i < count; ++i) {
        const uint16_t scale = random_scale(random);
        std::memcpy(out + 2 * i, &scale, 2);
    }
}

/// A packed matrix at an odd address whose last row ends with the allocation. Rows are `gap` bytes
/// further apart than they must be.
struct OddMatrix {
    OddMatrix(const Codec& codec, size_t rows, size_t cols, size_t gap, uint64_t seed)
        : row_bytes(codec.row_bytes(cols)),
          memory(odd_memory(rows * (row_bytes + gap) - gap)),
          sidecar(odd_memory(sidecar_size(codec, rows, cols))),
          view{memory.get() + 1, rows, activation_cols(codec, cols), row_bytes + gap,
               codec.sidecar == Sidecar::none ? nullptr : sidecar.get() + 1} {
        Random random(seed);
        draw_sidecar(codec, sidecar_size(codec, rows, cols), random);
        for (size_t r = 0; r < rows; ++r) {
            std::byte* row = memory.get() + 1 + r * (row_bytes + gap);
            draw_row(codec, cols, row, random);
            if (r + 1 < rows) std::memset(row + row_bytes, 0xff, gap);  // NaN in most formats
        }
    }

    static size_t sidecar_size(const Codec& codec, size_t rows, size_t cols) {
        if (codec.sidecar == Sidecar::levels) return kLloydLevels * sizeof(float);
        return codec.sidecar == Sidecar::none ? 0 : sidecar_bytes(codec, {rows, cols});
    }

    /// f16 numbers, or float32 levels.
    void draw_sidecar(const Codec& codec, size_t bytes, Random& random) {
        fill_scales(sidecar.get() + 1, bytes / 2, random);
        for (size_t k = 0; k < kLloydLevels && codec.sidecar == Sidecar::levels; ++k) {
            const float level = float(k) + 0.25f;
            std::memcpy(sidecar.get() + 1 + k * sizeof(float), &level, sizeof(float));
        }
    }

    /// Random bytes with sensible scales. Where these lie is asked of the format, except in rows
    /// that keep all scales before all codes.
    void draw_row(const Codec& codec, size_t cols, std::byte* row, Random& random) {
        const size_t header = codec.row_bytes(0);
        fill(row, row_bytes, random);
        if (header) fill_scales(row, 1, random);
        if (codec.name == "q8hfq") fill_scales(row, cols / 32, random);
        if (codec.name == "q8hfq" || codec.name == "mfp4g32e8soa")
            return;  // any 8-bit scale will do
        for (size_t c = 0; c < cols; c += codec.group)
            draw_group(codec, row, row + codec.row_bytes(c), random);
    }

    /// Random bytes, drawn again until the weights are numbers of a sensible size.
    void draw_group(const Codec& codec, const std::byte* row, std::byte* out, Random& random) {
        const size_t header = codec.row_bytes(0), bytes = codec.row_bytes(codec.group) - header;
        std::vector<std::byte> alone(header + bytes);
        std::copy_n(row, header, alone.data());
        std::vector<float> w(codec.group);
        float largest;
        do {
            fill(alone.data() + header, bytes, random);
            codec.cpu.decode_row({alone.data(), 1, codec.group, header + bytes, view.sidecar}, 0,
                                 w.data());
            largest = 0;
            for (float v : w) largest = std::isnan(v) ? v : std::max(largest, std::fabs(v));
        } while (!(largest > 0x1p-6f && largest < 0x1p6f));
        std::copy_n(alone.data() + header, bytes, out);
    }

    size_t row_bytes;
    Memory memory, sidecar;
    cpu::WeightView view;
};

/// `count` columns, each ending where its cols end; the last one ends the vector.
std::vector<float> random_columns(size_t cols, size_t count, size_t stride, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> x((count - 1) * stride + cols, NAN);
    for (size_t t = 0; t < count; ++t)
        for (size_t i = 0; i < cols; ++i) x[t * stride + i] = uniform(random);
    x.shrink_to_fit();
    return x;
}

std::vector<size_t> sizes_of(const Codec& codec) {
    std::vector<size_t> all = {1, 7, 9, 33, 32, 64, 96, 512, 1056, 1280, 4096}, fitting;
    for (size_t cols : all)
        if (cols % cols_unit(codec) == 0) fitting.push_back(cols);
    return fitting;
}

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

bool same_bits(float a, float b) {
    return std::memcmp(&a, &b, sizeof(float)) == 0;
}

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
            // A lane takes cols / 8 roundings, the fold three
            const double allowed = (std::ceil(double(c.W.view.cols) / 8) + 3) * 0x1p-24;
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
