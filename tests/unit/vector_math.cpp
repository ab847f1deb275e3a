// Vector math: the same bits at every level, and close to the truth.
#include "cpuexec/vector_math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "cpuexec/isa.h"

namespace hf {
namespace {

using cpu::Level;
using cpu::VectorMath;
using Floats = std::vector<float>;  // ends where its memory ends

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kEpsilon = double(std::numeric_limits<float>::epsilon());
constexpr Level kTwins[] = {Level::scalar, Level::avx2, Level::avx512vnni};

Floats random_floats(size_t n, uint32_t seed, float low = -4, float high = 4) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> draw(low, high);
    Floats values(n);
    for (float& v : values) v = draw(engine);
    return values;
}

/// Bits, but any NaN is as good as another.
bool same(const Floats& a, const Floats& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
        return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y) ||
               (std::isnan(x) && std::isnan(y));
    });
}

/// A convolution of `taps` over n channels, each row of inputs in memory of its own.
Floats convolve(const VectorMath& math, size_t taps, size_t n, uint32_t seed) {
    const Floats w = random_floats(n * taps, seed);
    std::vector<Floats> rows;
    std::vector<const float*> x;
    for (size_t j = 0; j < taps; ++j) rows.push_back(random_floats(n, seed + uint32_t(j) + 1));
    for (const Floats& row : rows) x.push_back(row.data());
    Floats out(n);
    math.conv_silu(w.data(), x.data(), taps, n, out.data());
    return out;
}

/// What a function makes of a and b.
struct Case {
    std::string name;
    Floats (*run)(const VectorMath& math, const Floats& a, const Floats& b);
};
template <class F>
Floats with_out(const Floats& a, F f) {
    Floats out = a;  // in place, the harder case
    f(out.data());
    return out;
}
// clang-format off
const Case kCases[] = {
    {"dot", [](const VectorMath& m, const Floats& a, const Floats& b) { return Floats{m.dot(a.data(), b.data(), a.size())}; }},
    {"sum", [](const VectorMath& m, const Floats& a, const Floats&) { return Floats{m.sum(a.data(), a.size())}; }},
    {"largest", [](const VectorMath& m, const Floats& a, const Floats&) { return Floats{m.largest(a.data(), a.size())}; }},
    {"add", [](const VectorMath& m, const Floats& a, const Floats& b) { return with_out(a, [&](float* x) { m.add(x, b.data(), a.size(), x); }); }},
    {"scale", [](const VectorMath& m, const Floats& a, const Floats&) { return with_out(a, [&](float* x) { m.scale(x, 0.3f, a.size(), x); }); }},
    {"mul_silu", [](const VectorMath& m, const Floats& a, const Floats& b) { return with_out(a, [&](float* x) { m.mul_silu(b.data(), x, a.size(), x); }); }},
    {"mul_sigmoid", [](const VectorMath& m, const Floats& a, const Floats& b) { return with_out(a, [&](float* x) { m.mul_sigmoid(x, b.data(), a.size(), x); }); }},
    {"exp_shifted", [](const VectorMath& m, const Floats& a, const Floats&) { return with_out(a, [&](float* x) { m.exp_shifted(x, 0.7f, 1.5f, a.size(), x); }); }},
    {"rmsnorm", [](const VectorMath& m, const Floats& a, const Floats& b) { return with_out(a, [&](float* x) { m.rmsnorm(x, b.data(), 1e-6f, a.size(), x); }); }},
    {"conv_silu of 4", [](const VectorMath& m, const Floats& a, const Floats&) { return convolve(m, 4, a.size(), 5); }},
    {"conv_silu of 3", [](const VectorMath& m, const Floats& a, const Floats&) { return convolve(m, 3, a.size(), 6); }},
};
// clang-format on

const VectorMath& plain() {
    return cpu::vector_math(Level::scalar);
}

}  // namespace

TEST_CASE("vector math: AVX2 gives the bits of the plain functions at any length") {
    if (!cpu::cpu_has(Level::avx2)) return;
    const VectorMath& avx2 = cpu::vector_math(Level::avx2);
    CHECK(&avx2 == &cpu::vector_math(Level::avxvnni));
    const float odd[] = {0, -0.0f, 1e-40f, -200, 200, 3e38f, kInfinity, -kInfinity, NAN};
    for (const Case& c : kCases)
        for (size_t n = 1; n < 80; ++n) {
            CAPTURE(c.name);
            CAPTURE(n);
            Floats a = random_floats(n, uint32_t(n)), b = random_floats(n, uint32_t(n) + 100);
            CHECK(same(c.run(plain(), a, b), c.run(avx2, a, b)));
            a[n / 2] = odd[n % std::size(odd)];
            b[n / 3] = odd[n / 5 % std::size(odd)];
            CHECK(same(c.run(plain(), a, b), c.run(avx2, a, b)));
        }
}

TEST_CASE("vector math: exp is within one unit in the last place of exp in double") {
    double worst = 0;
    Floats x(256), y(256);
    for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 4099 * x.size()) {
        for (size_t i = 0; i < x.size(); ++i)
            x[i] = std::bit_cast<float>(uint32_t(bits + 4099 * i));
        plain().exp_shifted(x.data(), 1, 0, x.size(), y.data());
        for (size_t i = 0; i < x.size(); ++i) {
            const double want = std::exp(double(x[i]));
            if (std::isnan(want) || want > double(std::numeric_limits<float>::max())) {
                const bool kind = std::isnan(want) ? std::isnan(y[i]) : y[i] == kInfinity;
                CHECK_MESSAGE(kind, x[i]);
            } else {
                const double normal = std::max(want, 0x1p-126);  // denormals have its unit
                const double unit = std::ldexp(1, std::ilogb(normal) - 23);
                worst = std::max(worst, std::abs(want - double(y[i])) / unit);
            }
        }
    }
    MESSAGE("worst " << worst << " units");
    CHECK(worst < 1);
    const float exact[][2] = {{0, 1}, {-0.0f, 1}, {-kInfinity, 0}, {-104, 0}, {89, kInfinity}};
    for (const auto& [from, to] : exact) {
        float out;
        plain().exp_shifted(&from, 1, 0, 1, &out);
        CHECK(out == to);
    }
}

TEST_CASE("vector math: sums and gates are close to those in double") {
    for (const size_t n : {1u, 7u, 8u, 100u, 4096u}) {
        CAPTURE(n);
        const Floats a = random_floats(n, 31), b = random_floats(n, 32, -30, 30);
        double dot = 0, squares = 0, size = 0;
        for (size_t i = 0; i < n; ++i) {
            dot += double(a[i]) * double(b[i]);
            size += std::abs(double(a[i]) * double(b[i]));
            squares += double(a[i]) * double(a[i]);
        }
        CHECK(std::abs(double(plain().dot(a.data(), b.data(), n)) - dot) <=
              kEpsilon * double(n / 8 + 4) * size);
        CHECK(plain().largest(a.data(), n) == *std::max_element(a.begin(), a.end()));

        Floats silu(n), sigmoid(n), norm(n);
        plain().mul_silu(a.data(), b.data(), n, silu.data());
        plain().mul_sigmoid(a.data(), b.data(), n, sigmoid.data());
        plain().rmsnorm(a.data(), b.data(), 1e-5f, n, norm.data());
        const double rms = std::sqrt(squares / double(n) + 1e-5);
        for (size_t i = 0; i < n; ++i) {
            const double gate = 1 / (1 + std::exp(-double(b[i]))), x = double(a[i]);
            CHECK(double(sigmoid[i]) == doctest::Approx(x * gate).epsilon(4 * kEpsilon));
            CHECK(double(silu[i]) ==
                  doctest::Approx(x * double(b[i]) * gate).epsilon(4 * kEpsilon));
            CHECK(double(norm[i]) ==
                  doctest::Approx(x / rms * double(b[i])).epsilon(double(n / 8 + 8) * kEpsilon));
        }
    }
    const Floats with_nan = {NAN, 2, -1, NAN};
    CHECK(plain().largest(with_nan.data(), 4) == 2);
    CHECK(plain().largest(with_nan.data(), 1) == -kInfinity);
}

TEST_CASE("vector math: weighted rows are sums by fma, term after term, of any shape") {
    for (const Level level : kTwins) {
        if (!cpu::cpu_has(level)) continue;
        uint32_t seed = 1;
        for (const size_t rows : {1u, 2u, 3u, 4u, 5u, 11u})
            for (const size_t terms : {0u, 1u, 15u, 16u, 17u, 50u})
                for (const size_t cols : {1u, 7u, 8u, 24u, 40u, 71u, 128u}) {
                    CAPTURE(cpu::name(level));
                    CAPTURE(rows);
                    CAPTURE(terms);
                    CAPTURE(cols);
                    const size_t gap = terms % 2 * 3, stride = cols + gap;
                    const Floats values = random_floats(terms ? terms * stride - gap : 0, ++seed);
                    std::vector<Floats> weights, got;
                    std::vector<const float*> weights_of;
                    std::vector<float*> out;
                    for (size_t r = 0; r < rows; ++r) {
                        weights.push_back(random_floats(terms, ++seed));
                        got.push_back(random_floats(cols, ++seed));
                    }
                    std::vector<Floats> want = got;
                    for (size_t r = 0; r < rows; ++r) {
                        weights_of.push_back(weights[r].data());
                        out.push_back(got[r].data());
                        for (size_t c = 0; c < cols; ++c)
                            for (size_t j = 0; j < terms; ++j)
                                want[r][c] =
                                    std::fma(weights[r][j], values[j * stride + c], want[r][c]);
                    }
                    cpu::vector_math(level).add_weighted(
                        {rows, terms, cols, weights_of.data(), values.data(), stride, out.data()});
                    bool all = true;
                    for (size_t r = 0; r < rows; ++r) all = all && same(got[r], want[r]);
                    CHECK(all);
                }
    }
}

TEST_CASE("vector math: products of rows go to 16 lanes by fma, at any shape and level") {
    for (const Level level : kTwins) {
        if (!cpu::cpu_has(level)) continue;
        uint32_t seed = 1;
        for (const size_t rows : {1u, 2u, 3u, 4u, 5u, 11u})
            for (const size_t others : {0u, 1u, 2u, 3u, 4u, 7u, 16u})
                for (const size_t cols : {1u, 7u, 8u, 9u, 15u, 16u, 40u, 71u, 128u}) {
                    CAPTURE(cpu::name(level));
                    CAPTURE(rows);
                    CAPTURE(others);
                    CAPTURE(cols);
                    const size_t gap = others % 2 * 3, stride = cols + gap;
                    const Floats y = random_floats(others ? others * stride - gap : 0, ++seed);
                    std::vector<Floats> x, want, got(rows, Floats(others));
                    std::vector<const float*> x_of;
                    std::vector<float*> out;
                    for (size_t i = 0; i < rows; ++i) x.push_back(random_floats(cols, ++seed));
                    for (size_t i = 0; i < rows; ++i) {
                        x_of.push_back(x[i].data());
                        out.push_back(got[i].data());
                        Floats& products = want.emplace_back(others);
                        for (size_t j = 0; j < others; ++j) {
                            float l[16] = {};
                            for (size_t c = 0; c < cols; ++c)
                                l[c % 16] = std::fma(x[i][c], y[j * stride + c], l[c % 16]);
                            for (size_t half = 8; half > 0; half /= 2)
                                for (size_t k = 0; k < half; ++k) l[k] += l[k + half];
                            products[j] = l[0];
                        }
                    }
                    cpu::vector_math(level).multiply(
                        {rows, others, cols, x_of.data(), y.data(), stride, out.data()});
                    bool all = true;
                    for (size_t i = 0; i < rows; ++i) all = all && same(got[i], want[i]);
                    CHECK(all);
                }
    }
}

TEST_CASE("vector math: a matrix updated on the way is what separate walks make of it") {
    for (const Level level : kTwins) {
        if (!cpu::cpu_has(level)) continue;
        uint32_t seed = 1;
        for (const size_t rows : {1u, 15u, 16u, 17u, 40u})
            for (const size_t cols : {1u, 7u, 8u, 31u, 41u, 128u, 150u}) {
                CAPTURE(cpu::name(level));
                CAPTURE(rows);
                CAPTURE(cols);
                Floats want = random_floats(rows * cols, ++seed), got = want;
                const Floats u = random_floats(rows, ++seed), v = random_floats(cols, ++seed);
                const Floats weights[] = {random_floats(rows, ++seed), random_floats(rows, ++seed)};
                const float* weights_of[] = {weights[0].data(), weights[1].data()};
                Floats want_out[] = {random_floats(cols, ++seed), random_floats(cols, ++seed)};
                Floats got_out[] = {want_out[0], want_out[1]};
                const float decay = 0.7f;

                plain().scale(want.data(), decay, want.size(), want.data());
                for (size_t r = 0; r < rows; ++r) {
                    const float* one = &u[r];
                    float* row = &want[r * cols];
                    plain().add_weighted({1, 1, cols, &one, v.data(), cols, &row});
                }
                float* out[] = {want_out[0].data(), want_out[1].data()};
                plain().add_weighted({2, rows, cols, weights_of, want.data(), cols, out});

                cpu::vector_math(level).update({.rows = rows,
                                                .cols = cols,
                                                .x = got.data(),
                                                .decay = decay,
                                                .u = u.data(),
                                                .v = v.data(),
                                                .weights = {weights_of[0], weights_of[1]},
                                                .out = {got_out[0].data(), got_out[1].data()}});
                CHECK(same(got, want));
                CHECK(same(got_out[0], want_out[0]));
                CHECK(same(got_out[1], want_out[1]));
            }
    }
}

}  // namespace hf
