// Integer dots: of every format, at every level, the bits of the plain one; and that one in the
// order that is written down, close to the truth.
#include <pthread.h>

#include <functional>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cpuexec/activations.h"
#include "cpuexec/blocks.h"
#include "cpuexec/float16.h"
#include "cpuexec/isa.h"
#include "tests/unit/dot_matrices.h"

namespace hf {
namespace {

using cpu::Activations;
using cpu::Level;

constexpr Activations kIntegers[] = {Activations::i16, Activations::int8};
constexpr size_t kRows = 13, kMostColumns = 7;

double largest_code(Activations a) {
    return a == Activations::i16 ? 32639 : 127;
}

/// Columns of float32, and the same prepared, the last one ending with its memory.
struct Prepared {
    Prepared(const cpu::Prepare& p, Activations a, const std::vector<float>& x, size_t cols)
        : count(x.size() / cols),
          stride(cpu::prepared_floats(p, a, cols) + 3),
          memory((count * stride - 3) * sizeof(float)) {
        for (size_t t = 0; t < count; ++t)
            cpu::prepare(Level::scalar, p, a, &x[t * cols], cols, column(t));
    }
    float* column(size_t t) const { return reinterpret_cast<float*>(memory.get()) + t * stride; }
    /// The last n columns.
    cpu::Columns last(size_t n) const { return {column(count - n), stride, n}; }
    size_t count, stride;
    GuardedMemory memory;
};

/// A weight, its columns, and what the plain dot makes of them: y[t * kRows + r].
struct Case {
    Case(const Codec& codec, Activations a, size_t cols)
        : W(codec, kRows, cols, /*gap=*/3, /*seed=*/cols),
          x(random_columns(W.view.cols, kMostColumns, W.view.cols, /*seed=*/cols + 1)),
          prepared(codec.cpu.prepare, a, x, W.view.cols),
          y(kMostColumns * kRows) {
        for (size_t t = 0; t < kMostColumns; ++t)
            codec.cpu.dot[0][size_t(a)](W.view, 0, kRows, {prepared.column(t), 0, 1}, &y[t * kRows],
                                        kRows);
    }
    OddMatrix W;
    std::vector<float> x;
    Prepared prepared;
    std::vector<float> y;
};

/// How many of the asked products have other bits than they should, or were written unasked.
size_t wrong_products(const Case& c, cpu::Dot dot, size_t r0, size_t r1, size_t count) {
    std::vector<float> y(count * kRows, NAN);
    dot(c.W.view, r0, r1, c.prepared.last(count), y.data() + r0, kRows);
    size_t wrong = 0;
    for (size_t t = 0; t < count; ++t)
        for (size_t r = 0; r < kRows; ++r) {
            const float got = y[t * kRows + r];
            const float want = c.y[(kMostColumns - count + t) * kRows + r];
            wrong += r >= r0 && r < r1 ? !same_bits(got, want) : !std::isnan(got);
        }
    return wrong;
}

/// f16 from two bytes of a block.
double f16_at(const std::byte* at) {
    uint16_t bits;
    std::memcpy(&bits, at, 2);
    return double(cpu::f16_to_f32(bits));
}

/// An activation column as the definition has it: q and d of groups, found with plain arithmetic.
struct Quantised {
    Quantised(const std::vector<float>& x, size_t group, Activations a) {
        for (size_t g = 0; g < x.size(); g += group) {
            float largest = 0;
            for (size_t i = g; i < g + group; ++i) largest = std::max(largest, std::fabs(x[i]));
            d.push_back(largest / float(largest_code(a)));
            for (size_t i = g; i < g + group; ++i) q.push_back(int64_t(std::rint(x[i] / d.back())));
        }
    }
    std::vector<float> d;
    std::vector<int64_t> q;
};

float fold4(const float* a) {
    return (a[0] + a[2]) + (a[1] + a[3]);
}

/// q4_0 in the canonical order: from the bytes, with sums in 64 bits.
float expected_q4_0(const std::byte* row, const Quantised& x) {
    float lane[4] = {};
    for (size_t b = 0; b < x.d.size(); ++b, row += 18) {
        int64_t sum = 0;
        for (size_t j = 0; j < 16; ++j) {
            sum += (int(row[2 + j] & std::byte(15)) - 8) * x.q[32 * b + j];
            sum += (int(row[2 + j] >> 4) - 8) * x.q[32 * b + 16 + j];
        }
        lane[b % 4] = std::fma(float(sum), float(f16_at(row)) * x.d[b], lane[b % 4]);
    }
    return fold4(lane);
}

/// mq4g256v2 likewise: two terms of 128 in a block, with a zero each.
float expected_mq4(const std::byte* row, const Quantised& x) {
    float lane[4] = {};
    for (size_t g = 0; g < x.d.size(); ++g) {
        const std::byte* block = row + g / 2 * 136;
        const float scale = float(f16_at(block + g % 2 * 4));
        const float zero = float(f16_at(block + g % 2 * 4 + 2));
        int64_t sum = 0, codes = 0;
        for (size_t i = 0; i < 128; ++i) {
            const std::byte pair = block[8 + g % 2 * 64 + i / 2];
            sum += int(i % 2 ? pair >> 4 : pair & std::byte(15)) * x.q[128 * g + i];
            codes += x.q[128 * g + i];
        }
        lane[g % 4] = std::fma(zero, x.d[g] * float(codes), lane[g % 4]);
        lane[g % 4] = std::fma(float(sum), scale * x.d[g], lane[g % 4]);
    }
    return fold4(lane);
}

TEST_CASE("plain integer dots follow the canonical order, found from the bytes alone") {
    struct {
        const char* name;
        size_t group;
        float (*expected)(const std::byte*, const Quantised&);
    } formats[] = {{"q4_0", 32, expected_q4_0}, {"mq4g256v2", 128, expected_mq4}};
    for (const auto& format : formats)
        for (const Activations a : kIntegers)
            for (const size_t cols : {256, 768, 4096}) {
                const Case c(*codec_by_name(format.name), a, cols);
                for (size_t t = 0; t < kMostColumns; ++t) {
                    const std::vector<float> column(&c.x[t * cols], &c.x[t * cols] + cols);
                    const Quantised x(column, format.group, a);
                    for (size_t r = 0; r < kRows; ++r)
                        CHECK(c.y[t * kRows + r] ==
                              format.expected(c.W.view.base + r * c.W.view.row_bytes, x));
                }
            }
}

TEST_CASE("integer dots give the same bits at every level, for one column and for many") {
    for (const Codec& codec : codecs()) {
        if (!codec.cpu.prepare.has_integers()) continue;
        CAPTURE(codec.name);
        for (const Activations a : kIntegers)
            for (const size_t cols : sizes_of(codec)) {
                CAPTURE(cols);
                const Case c(codec, a, cols);
                for (size_t l = 0; l < cpu::kLevels; ++l) {
                    const cpu::Dot dot = codec.cpu.dot[l][size_t(a)];
                    if (!dot || !cpu::cpu_has(Level(l))) continue;
                    CAPTURE(cpu::name(Level(l)));
                    for (size_t count = 1; count <= kMostColumns; ++count)
                        CHECK(wrong_products(c, dot, 0, kRows, count) == 0);
                    for (const auto& [r0, r1] :
                         {std::pair<size_t, size_t>{0, 1}, {3, 10}, {kRows - 1, kRows}, {5, 5}})
                        CHECK(wrong_products(c, dot, r0, r1, 3) == 0);
                }
            }
    }
}

TEST_CASE("integer dots of many rows and columns have the bits of AVX2") {
    constexpr size_t kManyRows = 70;
    if (!cpu::cpu_has(Level::avx512vnni)) return;
    for (const Codec& codec : codecs()) {
        if (!codec.cpu.prepare.has_integers() || !codec.cpu.dot[size_t(Level::avx512vnni)][1])
            continue;
        CAPTURE(codec.name);
        const size_t cols = 1056 % cols_unit(codec) == 0 ? 1056 : 1280;  // the first ends in a part
        const OddMatrix W(codec, kManyRows, cols, /*gap=*/3, /*seed=*/7);
        for (const Activations a : kIntegers)
            for (const size_t count : {7, 15, 16, 17, 31, 64, 67}) {
                CAPTURE(count);
                const size_t width = W.view.cols;
                const Prepared x(codec.cpu.prepare, a, random_columns(width, count, width, 3),
                                 width);
                const auto product = [&](Level level, size_t r0, size_t r1) {
                    std::vector<float> y(count * kManyRows, NAN);
                    cpu::pick_dot(codec.cpu, level, a)(W.view, r0, r1, x.last(count), y.data() + r0,
                                                       kManyRows);
                    return y;
                };
                for (const auto& [r0, r1] : {std::pair<size_t, size_t>{0, kManyRows}, {5, 38}}) {
                    const std::vector<float> want = product(Level::avx2, r0, r1);
                    for (const Level level : {Level::avx512vnni, Level::amx}) {
                        if (!cpu::cpu_has(level)) continue;
                        const std::vector<float> got = product(level, r0, r1);
                        CHECK(std::memcmp(got.data(), want.data(), got.size() * 4) == 0);
                    }
                }
            }
    }
}

TEST_CASE("integer dots take 8-bit scales of every value, beside any scale of the row") {
    constexpr size_t kBlocks = 4, kScaleRows = 256 / kBlocks, kCols = 32 * kBlocks;
    struct {
        const char* name;
        size_t header, distance;  // bytes before the first scale, and from one to the next
    } formats[] = {{"hfp4g32", 16, 17},   {"mfp4g32p", 16, 17}, {"mfp4g32e8", 16, 17},
                   {"mfp3g32e8", 16, 13}, {"mfp2g32e8", 16, 9}, {"mfp4g32e8soa", 16, 1},
                   {"mxfp4", 0, 17}};
    for (const auto& format : formats)
        for (const int row_scale : {0x0001, 0x0400, 0x3c01, 0x7bff, 0x7c00}) {
            CAPTURE(std::string(format.name));
            CAPTURE(row_scale);
            const Codec& codec = *codec_by_name(format.name);
            const OddMatrix W(codec, kScaleRows, kCols, 0, /*seed=*/9);
            for (size_t r = 0; r < kScaleRows; ++r) {
                std::byte* row = W.memory.get() + r * W.row_bytes;
                if (format.header > 0) std::memcpy(row, &row_scale, 2);
                for (size_t b = 0; b < kBlocks; ++b)
                    row[format.header + b * format.distance] = std::byte(kBlocks * r + b);
            }
            for (const Activations a : kIntegers) {
                const Prepared x(codec.cpu.prepare, a, random_columns(kCols, 1, kCols, 3), kCols);
                float want[kScaleRows], got[kScaleRows];
                codec.cpu.dot[0][size_t(a)](W.view, 0, kScaleRows, x.last(1), want, kScaleRows);
                for (size_t l = 1; l < cpu::kLevels; ++l) {
                    const cpu::Dot dot = codec.cpu.dot[l][size_t(a)];
                    if (!dot || !cpu::cpu_has(Level(l))) continue;
                    dot(W.view, 0, kScaleRows, x.last(1), got, kScaleRows);
                    for (size_t r = 0; r < kScaleRows; ++r)
                        CHECK((same_bits(got[r], want[r]) ||
                               (std::isnan(got[r]) && std::isnan(want[r]))));
                }
            }
        }
}

TEST_CASE("integer dots of more rows and columns than tiles take at once have the bits of AVX2") {
    constexpr size_t rows = 150, cols = 4352, count = 64;
    if (!cpu::cpu_has(Level::amx)) return;
    for (const char* name : {"q4_0", "q6_k", "mq4g256v2", "q8hfq", "mfp4g32e8soa"}) {
        CAPTURE(std::string(name));
        const Codec& codec = *codec_by_name(name);
        const OddMatrix W(codec, rows, cols, /*gap=*/3, /*seed=*/11);
        for (const Activations a : kIntegers) {
            const Prepared x(codec.cpu.prepare, a, random_columns(cols, count, cols, 5), cols);
            std::vector<float> want(count * rows), got(count * rows, NAN);
            cpu::pick_dot(codec.cpu, Level::avx2, a)(W.view, 0, rows, x.last(count), want.data(),
                                                     rows);
            cpu::pick_dot(codec.cpu, Level::amx, a)(W.view, 0, rows, x.last(count), got.data(),
                                                    rows);
            CHECK(std::memcmp(got.data(), want.data(), got.size() * 4) == 0);
        }
    }
}

/// Runs it on a thread with a stack of so many bytes.
void run_with_stack(size_t bytes, std::function<void()> work) {
    pthread_attr_t attributes;
    pthread_t thread;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
    const auto call = [](void* given) -> void* {
        (*static_cast<std::function<void()>*>(given))();
        return nullptr;
    };
    REQUIRE(pthread_create(&thread, &attributes, call, &work) == 0);
    REQUIRE(pthread_join(thread, nullptr) == 0);
    pthread_attr_destroy(&attributes);
}

TEST_CASE("integer dots of many columns work on a small stack") {
    constexpr size_t rows = 20, cols = 1024, count = 64;
    const Codec& codec = *codec_by_name("q4_0");
    const OddMatrix W(codec, rows, cols, /*gap=*/3, /*seed=*/11);
    for (const Activations a : kIntegers) {
        const Prepared x(codec.cpu.prepare, a, random_columns(cols, count, cols, 5), cols);
        std::vector<float> want(count * rows);
        codec.cpu.dot[0][size_t(a)](W.view, 0, rows, x.last(count), want.data(), rows);
        for (size_t l = 1; l < cpu::kLevels; ++l) {
            const cpu::Dot dot = codec.cpu.dot[l][size_t(a)];
            if (!dot || !cpu::cpu_has(Level(l))) continue;
            std::vector<float> got(count * rows, NAN);
            run_with_stack(256 << 10,
                           [&] { dot(W.view, 0, rows, x.last(count), got.data(), rows); });
            CHECK(std::memcmp(got.data(), want.data(), got.size() * 4) == 0);
        }
    }
}

/// What a product may be off, and what it is, as shares of sum |w x|.
struct Error {
    double worst = 0, worst_of_allowed = 0;
};

void measure(const Codec& codec, Activations a, size_t cols, Error& error) {
    const Case c(codec, a, cols);
    const cpu::Prepare& p = codec.cpu.prepare;
    const double eps = 0x1p-24;
    std::vector<float> w(c.W.view.cols);
    for (size_t r = 0; r < kRows; ++r) {
        codec.cpu.decode_row(c.W.view, r, w.data());
        for (size_t t = 0; t < kMostColumns; t += 4) {
            double sum = 0, magnitude = 0, rounding = 0, terms = 0;
            for (size_t g = 0; g < w.size(); g += p.group) {
                double largest_x = 0, largest_w = 0;
                const size_t end = std::min<size_t>(w.size(), g + p.group);
                for (size_t i = g; i < end; ++i) {
                    largest_x = std::max(largest_x, std::fabs(double(c.x[t * w.size() + i])));
                    largest_w = std::max(largest_w, std::fabs(double(w[i])));
                }
                for (size_t i = g; i < end; ++i) {
                    const double x = double(c.x[t * w.size() + i]);
                    sum += double(w[i]) * x;
                    magnitude += std::fabs(double(w[i]) * x);
                    // Half a step, and a little for the rounding of x / d
                    rounding += std::fabs(double(w[i])) * 0.51 * largest_x / largest_code(a);
                    // A weight is a scaled code and a zero, each at most 3 times the largest weight
                    terms += 3 * largest_w * std::fabs(x);
                }
            }
            // Of a lane: an fma or two for each of its terms; scales, S and the fold besides
            const double steps = double(2 * w.size() / p.term) / 4 + 6;
            const double off = std::fabs(double(c.y[t * kRows + r]) - sum);
            error.worst = std::max(error.worst, off / magnitude);
            error.worst_of_allowed =
                std::max(error.worst_of_allowed, off / (rounding + steps * eps * terms));
        }
    }
}

TEST_CASE("integer dots are as close to the sum in double precision as their activations allow") {
    for (const Codec& codec : codecs())
        for (const Activations a : kIntegers) {
            if (!codec.cpu.prepare.has_integers()) continue;
            Error error;
            for (const size_t cols : sizes_of(codec))
                if (cols >= 256) measure(codec, a, cols, error);
            MESSAGE(fmt::format("{} {}: worst error {:.1e} of sum |w x|, {:.3f} of the allowed",
                                codec.name, a == Activations::i16 ? "i16" : "int8", error.worst,
                                error.worst_of_allowed));
            CHECK(error.worst_of_allowed <= 1);
        }
}

/// Columns of cases that are easily got wrong. Two groups of 128 and something behind them.
std::vector<std::pair<std::string, std::vector<float>>> odd_columns(size_t cols) {
    std::vector<std::pair<std::string, std::vector<float>>> all;
    const auto add = [&](const char* name, auto value) {
        std::vector<float> x(cols);
        for (size_t i = 0; i < cols; ++i) x[i] = value(i);
        all.emplace_back(name, x);
    };
    add("zeros", [](size_t) { return 0.0f; });
    add("large", [](size_t i) { return (i % 2 ? 1e4f : -6e4f) + float(i); });
    add("denormal", [](size_t i) { return float(i % 7) * 0x1p-149f; });
    add("small", [](size_t i) { return float(i % 9) * 0x1p-126f; });
    add("mixed", [](size_t i) { return i % 50 == 0 ? 6e4f : 0x1p-120f * float(i); });
    add("largest", [](size_t i) { return i % 2 ? 0x1.fffffep127f : -0x1.fffffep127f; });
    add("infinite", [](size_t i) { return i == 5 ? INFINITY : 1.0f; });
    add("nan", [](size_t i) { return i == 300 ? NAN : 1.0f; });
    return all;
}

TEST_CASE("integer dots of odd activations have the same bits, and faults stay visible") {
    constexpr size_t kCols = 512;
    for (const Codec& codec : codecs()) {
        if (!codec.cpu.prepare.has_integers()) continue;
        CAPTURE(codec.name);
        const OddMatrix W(codec, 4, kCols, 0, /*seed=*/5);
        for (const Activations a : kIntegers)
            for (const auto& [name, x] : odd_columns(kCols)) {
                CAPTURE(name);
                const Prepared prepared(codec.cpu.prepare, a, x, kCols);
                float want[4], got[4];
                codec.cpu.dot[0][size_t(a)](W.view, 0, 4, prepared.last(1), want, 4);
                for (const float y : want) {
                    // Sums of the largest numbers may overflow both ways
                    if (name != "largest")
                        CHECK(std::isnan(y) == (name == "infinite" || name == "nan"));
                    if (name == "zeros" || name == "denormal") CHECK(y == 0);
                }
                for (size_t l = 1; l < cpu::kLevels; ++l) {
                    const cpu::Dot dot = codec.cpu.dot[l][size_t(a)];
                    if (!dot || !cpu::cpu_has(Level(l))) continue;
                    dot(W.view, 0, 4, prepared.last(1), got, 4);
                    for (size_t r = 0; r < 4; ++r)
                        CHECK((same_bits(got[r], want[r]) ||
                               (std::isnan(got[r]) && std::isnan(want[r]))));
                }
            }
    }
}

}  // namespace
}  // namespace hf
