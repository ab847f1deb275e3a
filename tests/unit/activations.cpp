// Activations as integers, against their definition.
#include <doctest/doctest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "cpuexec/activations.h"
#include "cpuexec/isa.h"
#include "libcore/codec/codec.h"

namespace hf::cpu {
namespace {

constexpr Activations kIntegers[] = {Activations::i16, Activations::int8};

/// What the formats of the table want, each once.
std::vector<Prepare> all_prepares() {
    std::vector<Prepare> all;
    for (const Codec& codec : codecs())
        if (codec.cpu.prepare.has_integers() &&
            std::find(all.begin(), all.end(), codec.cpu.prepare) == all.end())
            all.push_back(codec.cpu.prepare);
    return all;
}

/// Of awkward sizes from group to group, zeros, denormals and faults among them.
std::vector<float> awkward(size_t cols, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(cols);
    for (size_t i = 0; i < cols; ++i) {
        constexpr float kSizes[] = {1, 1e4f, 0, 1e-30f, FLT_MIN, 0x1p-149f, 1e38f, 127};
        x[i] = kSizes[i / 32 % 8] * (i % 8 == 7 ? std::rint(normal(random)) : normal(random));
    }
    if (cols > 2000) x[1000] = INFINITY, x[1500] = NAN;
    return x;
}

template <class T>
T read(const std::vector<float>& words, size_t at) {
    T value;
    std::memcpy(&value, reinterpret_cast<const char*>(words.data()) + at, sizeof(T));
    return value;
}

/// The largest magnitude; a NaN where one is not finite.
float largest_of(const float* x, size_t n) {
    float largest = 0;
    for (size_t i = 0; i < n; ++i)
        largest =
            std::isfinite(x[i]) && !std::isnan(largest) ? std::max(largest, std::fabs(x[i])) : NAN;
    return largest;
}

/// A unit in memory, taken apart.
struct Unit {
    const Prepare& p;
    Activations a;
    const std::vector<float>& words;
    size_t begin;

    int32_t code(size_t position) const {
        const size_t at = begin + position / 64 * 64 * code_bytes(a) + position % 64;
        if (a == Activations::int8) return read<int8_t>(words, at);
        return 256 * read<int8_t>(words, at) + read<int8_t>(words, at + 64);
    }
    template <class T>
    T number(size_t from, size_t term, size_t row) const {
        return read<T>(words, begin + from + (4 * term + row) * sizeof(T));
    }
};

bool same_number(float a, float b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

/// How many numbers of a unit are not what the definition makes of x (unit_cols).
size_t wrong_numbers(const Unit& u, const float* x) {
    const float limit = u.a == Activations::i16 ? 32639 : 127;
    size_t wrong = 0;
    float d[4] = {};
    int64_t sums[4] = {};
    for (size_t at = 0; at < unit_cols(u.p); ++at) {
        const size_t column = column_at(u.p, at), term = column / u.p.term;
        d[term] = largest_of(x + column / u.p.group * u.p.group, u.p.group) / limit;
        if (d[term] < FLT_MIN) d[term] = 0;
        const bool is_zero = std::isnan(d[term]) || d[term] == 0;
        const float q = is_zero ? 0 : std::clamp(std::rint(x[column] / d[term]), -limit, limit);
        wrong += float(u.code(at)) != q;
        sums[term] += u.code(at);
    }
    for (size_t t = 0; t < 4; ++t)
        for (size_t row = 0; row < 4; ++row) {
            wrong += !same_number(u.number<float>(scales_at(u.p, u.a), t, row), d[t]);
            const size_t from = sums_at(u.p, u.a);
            wrong += u.p.zeros ? !same_number(u.number<float>(from, t, row), d[t] * float(sums[t]))
                               : u.number<int32_t>(from, t, row) != u.p.offset * sums[t];
        }
    return wrong;
}

TEST_CASE("prepared columns hold scales, codes and sums as the definition has them") {
    for (const Prepare& p : all_prepares())
        for (const Activations a : kIntegers)
            for (const size_t cols : {1, 31, 32, 100, 512, 4096, 4100}) {
                CAPTURE(p.term);
                CAPTURE(cols);
                const size_t unit = unit_cols(p), units = (cols + unit - 1) / unit;
                std::vector<float> x = awkward(cols, /*seed=*/cols);
                std::vector<float> words(prepared_floats(p, a, cols));
                REQUIRE(words.size() * sizeof(float) == units * unit_bytes(p, a));
                prepare(Level::scalar, p, a, x.data(), cols, words.data());
                x.resize(units * unit);
                for (size_t u = 0; u < units; ++u)
                    CHECK(wrong_numbers({p, a, words, u * unit_bytes(p, a)}, &x[u * unit]) == 0);
            }
}

TEST_CASE("the positions of a unit hold each of its columns once, terms apart") {
    for (const Prepare& p : all_prepares()) {
        std::set<size_t> columns;
        for (size_t at = 0; at < unit_cols(p); ++at) columns.insert(column_at(p, at));
        CHECK(columns.size() == unit_cols(p));
        CHECK(*columns.rbegin() == unit_cols(p) - 1);
    }
}

TEST_CASE("activations are prepared with the same bytes at every level, whole or in parts") {
    for (const Prepare& p : all_prepares())
        for (const Activations a : kIntegers) {
            constexpr size_t kCols = 4100;
            const std::vector<float> x = awkward(kCols, /*seed=*/3);
            std::vector<float> want(prepared_floats(p, a, kCols)), got(want.size());
            prepare(Level::scalar, p, a, x.data(), kCols, want.data());
            for (size_t l = 0; l < kLevels; ++l) {
                if (!cpu_has(Level(l))) continue;
                CAPTURE(name(Level(l)));
                const size_t first = 3 * unit_cols(p);
                prepare(Level(l), p, a, x.data(), first, got.data());
                prepare(Level(l), p, a, x.data() + first, kCols - first,
                        got.data() + prepared_floats(p, a, first));
                CHECK(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)) == 0);
            }
        }
}

}  // namespace
}  // namespace hf::cpu
