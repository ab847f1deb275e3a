#include "cpuexec/activations.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <limits>

#include "cpuexec/float16.h"
#include "cpuexec/simd.h"

namespace hf::cpu {
namespace {

constexpr size_t kMostCols = 512;  // of a unit

/// Nearest integer, ties to even, of |v| < 2^22: 1.5 * 2^23 leaves no bits behind the point.
HF_INLINE int32_t round_to_int(float v) {
    return std::bit_cast<int32_t>(v + 0x1.8p23f) - std::bit_cast<int32_t>(0x1.8p23f);
}

/// Writes q of n activations and returns d. The largest magnitude is found among the bits, where
/// what is not finite is larger than all numbers.
HF_INLINE float quantise(const float* x, size_t n, int32_t limit, int16_t* q) {
    uint32_t largest = 0;
    for (size_t i = 0; i < n; ++i)
        largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffff);
    const float d = std::bit_cast<float>(largest) / float(limit);
    if (largest >= kF32Infinity || d < FLT_MIN) {
        std::fill_n(q, n, int16_t(0));
        return d < FLT_MIN ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    }
    for (size_t i = 0; i < n; ++i)
        q[i] = int16_t(std::clamp(round_to_int(x[i] / d), -limit, limit));
    return d;
}

/// Writes the codes of a unit in an order, high bytes and low bytes apart.
template <size_t ways, size_t chunk>
HF_INLINE void write_codes(const int16_t* q, size_t cols, bool two_bytes, std::byte* out) {
    for (size_t block = 0; block < cols; block += 64 * ways)
        for (size_t w = 0; w < ways; ++w) {
            int16_t picked[64];
            for (size_t b = 0; b < 64; b += chunk)
                for (size_t i = 0; i < chunk; ++i)
                    picked[b + i] = q[block + b * ways + w * chunk + i];
            if (two_bytes) {  // the low byte is signed: what it takes off is added to the high one
                for (size_t b = 0; b < 64; ++b) out[b] = std::byte((picked[b] + 128) >> 8);
                out += 64;
            }
            for (size_t b = 0; b < 64; ++b) out[b] = std::byte(picked[b]);
            out += 64;
        }
}

HF_INLINE void write_codes(const Prepare& p, const int16_t* q, bool two_bytes, std::byte* out) {
    const size_t cols = unit_cols(p);
    if (p.ways == 1) return write_codes<1, 64>(q, cols, two_bytes, out);
    if (p.ways == 4) return write_codes<4, 1>(q, cols, two_bytes, out);
    if (p.chunk == 1) return write_codes<2, 1>(q, cols, two_bytes, out);
    if (p.chunk == 16) return write_codes<2, 16>(q, cols, two_bytes, out);
    write_codes<2, 32>(q, cols, two_bytes, out);
}

HF_INLINE void prepare_unit(const Prepare& p, Activations a, const float* x, std::byte* out) {
    const size_t cols = unit_cols(p), group = p.group;
    int16_t q[kMostCols];
    float d[kMostCols / 32];
    for (size_t g = 0; g * group < cols; ++g)
        d[g] = quantise(x + g * group, group, a == Activations::i16 ? 32639 : 127, q + g * group);
    write_codes(p, q, a == Activations::i16, out);
    for (size_t t = 0; t < 4; ++t) {
        int32_t sum = 0;
        for (size_t i = 0; i < p.term; ++i) sum += q[t * p.term + i];
        const float scale = d[t * p.term / group];
        const int32_t last = p.zeros ? std::bit_cast<int32_t>(scale * float(sum)) : p.offset * sum;
        for (size_t row = 0; row < 4; ++row) {
            const size_t at = (4 * t + row) * sizeof(float);
            std::memcpy(out + scales_at(p, a) + at, &scale, sizeof(float));
            std::memcpy(out + sums_at(p, a) + at, &last, sizeof(float));
        }
    }
}

void prepare_unit_plain(const Prepare& p, Activations a, const float* x, std::byte* out) {
    prepare_unit(p, a, x, out);
}
HF_AVX2 void prepare_unit_avx2(const Prepare& p, Activations a, const float* x, std::byte* out) {
    prepare_unit(p, a, x, out);
}

}  // namespace

size_t prepared_floats(const Prepare& p, Activations a, size_t cols) {
    return (cols + unit_cols(p) - 1) / unit_cols(p) * (unit_bytes(p, a) / sizeof(float));
}

void prepare(Level level, const Prepare& p, Activations a, const float* x, size_t cols,
             float* out) {
    const auto prepare_one = level >= Level::avx2 ? prepare_unit_avx2 : prepare_unit_plain;
    const size_t unit = unit_cols(p), rest = cols % unit;
    std::byte* to = reinterpret_cast<std::byte*>(out);
    for (size_t c = 0; c + unit <= cols; c += unit, to += unit_bytes(p, a))
        prepare_one(p, a, x + c, to);
    if (rest == 0) return;
    float last[kMostCols] = {};
    std::copy_n(x + cols - rest, rest, last);
    prepare_one(p, a, last, to);
}

}  // namespace hf::cpu
