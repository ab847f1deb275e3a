// The rotation: its signs, its order of operations, and the identity that it is there for.
#include "cpuexec/fwht.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "cpuexec/float16.h"
#include "cpuexec/isa.h"
#include "tests/support/data.h"

namespace hf {
namespace {

using cpu::Level;
using Floats = std::vector<float>;

constexpr size_t kBlocks[] = {128, 256};
constexpr Level kTwins[] = {Level::scalar, Level::avx2};

Floats rotated(const Floats& x, size_t block, Level level = Level::scalar) {
    Floats out(x.size());
    cpu::rotate(level, block, x.data(), x.size(), out.data());
    return out;
}
Floats unrotated(const Floats& x, size_t block, Level level = Level::scalar) {
    Floats out(x.size());
    cpu::unrotate(level, block, x.data(), x.size(), out.data());
    return out;
}
Floats unit_vector(size_t n, size_t i) {
    Floats e(n, 0.0f);
    e[i] = 1;
    return e;
}
bool same_bits(const Floats& a, const Floats& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Bits of the signs, 1 for +1, lowest first, as hexadecimal bytes.
template <class Sign>
std::string packed(size_t n, Sign sign_of) {
    std::string hex;
    for (size_t i = 0; i < n; i += 8) {
        unsigned byte = 0;
        for (size_t k = 0; k < 8; ++k) byte |= unsigned(sign_of(i + k) > 0) << k;
        hex += fmt::format("{:02x}", byte);
    }
    return hex;
}

TEST_CASE("rotation: the signs are those of the generator with its four seeds") {
    // R e_i begins with the first sign of element i, and R e_0 is the second signs, because both
    // vectors begin with +1 and the first row and column of H are ones.
    struct Case {
        size_t block;
        const char *first, *second;
    };
    constexpr Case cases[] = {
        {256, "6f431f7edba4cc7df732616531ea6134acf88f3f38308757889d933fa3258e40",
         "61b35e61a484ab8e3bc0812461c61c51b819d43a93ecf3be71423aeee9af0f39"},
        {128, "31e9726393992ed396009bd1bce65a3d", "b73363b4e0b988e870577c98b4d03558"},
    };
    for (const Case& c : cases) {
        CHECK(packed(c.block, [&](size_t i) {
                  return rotated(unit_vector(c.block, i), c.block)[0];
              }) == c.first);
        const Floats second = rotated(unit_vector(c.block, 0), c.block);
        CHECK(packed(c.block, [&](size_t i) { return second[i]; }) == c.second);
    }
}

TEST_CASE("rotation: worked examples") {
    const auto begins = [](const Floats& x, std::initializer_list<float> expected) {
        return std::equal(expected.begin(), expected.end(), x.begin());
    };
    constexpr float c = 0.0625f;
    CHECK(begins(rotated(unit_vector(256, 0), 256), {c, -c, -c, -c, -c, c, c, -c}));
    CHECK(begins(rotated(unit_vector(256, 1), 256), {c, c, -c, c, -c, -c, c, c}));
    CHECK(begins(unrotated(unit_vector(256, 0), 256), {c, c, c, c, -c, c, c, -c}));
    CHECK(std::fabs(rotated(unit_vector(128, 0), 128)[0]) == std::bit_cast<float>(0x3db504f3));

    Floats ramp(256);
    for (size_t i = 0; i < 256; ++i) ramp[i] = float(i);
    Floats out = rotated(ramp, 256);
    CHECK(begins(out, {-56.25f, 53.75f, -159.25f, -62.75f, -105.25f, 230.75f, -116.25f, 27.75f}));
    out.erase(out.begin(), out.begin() + 252);
    CHECK(begins(out, {95, -63, 268, 12}));
}

TEST_CASE("rotation and AWQ division give the golden activations bit for bit") {
    const auto golden = [](const char* name) {
        return test::read_values<float>(test::data_path(std::string("codecs/gemv.") + name));
    };
    const Floats x = golden("x.f32");
    Floats divided(x.size()), scale;
    for (uint16_t half : test::read_values<uint16_t>(test::data_path("codecs/gemv.awq.f16")))
        scale.push_back(cpu::f16_to_f32(half));
    REQUIRE(scale.size() == x.size());
    cpu::divide(x.data(), scale.data(), x.size(), divided.data());
    for (const Level level : kTwins) {
        if (!cpu::cpu_has(level)) continue;
        CHECK(same_bits(rotated(x, 256, level), golden("x_rot256.f32")));
        CHECK(same_bits(rotated(x, 128, level), golden("x_rot128.f32")));
        CHECK(same_bits(rotated(divided, 256, level), golden("x_awq_rot256.f32")));
    }
}

TEST_CASE("rotation: AVX2 gives the bits of plain code, in place too, for all kinds of numbers") {
    if (!cpu::cpu_has(Level::avx2)) return;
    std::mt19937_64 random(11);
    for (const size_t block : kBlocks) {
        for (int trial = 0; trial < 50; ++trial) {
            Floats x(3 * block + 1);  // at an address of 4 bytes' alignment
            for (float& v : x) {
                const auto bits = uint32_t(random());
                v = std::bit_cast<float>(trial % 2 ? bits & 0x807fffff : bits);  // subnormal or any
                if (std::isnan(v)) v = -0.0f;
            }
            Floats plain(x.size()), wide = x;
            for (const auto transform : {cpu::rotate, cpu::unrotate}) {
                transform(Level::scalar, block, &x[1], 3 * block, &plain[1]);
                wide = x;
                transform(Level::avx2, block, &wide[1], 3 * block, &wide[1]);
                size_t wrong = 0;
                for (size_t i = 1; i < x.size(); ++i)
                    wrong += std::isnan(plain[i])
                                 ? !std::isnan(wide[i])
                                 : std::memcmp(&plain[i], &wide[i], sizeof(float)) != 0;
                CHECK(wrong == 0);
            }
        }
    }
}

TEST_CASE("rotating back gives the values again") {
    std::mt19937_64 random(12);
    std::normal_distribution<float> normal;
    for (const size_t block : kBlocks) {
        Floats x(4 * block);
        for (float& v : x) v = normal(random);
        const Floats back = unrotated(rotated(x, block), block);
        for (size_t b = 0; b < 4; ++b) {
            double norm = 0, worst = 0;
            for (size_t i = b * block; i < (b + 1) * block; ++i) {
                norm += double(x[i]) * double(x[i]);
                worst = std::max(worst, std::fabs(double(back[i]) - double(x[i])));
            }
            // Two passes of log2(block) + 2 roundings, each at most eps / 2 of the norm
            const double allowed = 2 * (std::log2(double(block)) + 2) * 0x1p-24 * std::sqrt(norm);
            CHECK(worst <= allowed);
        }
    }
}

}  // namespace
}  // namespace hf
