// *fp4*, *e8*: rows with a scale, blocks of 32 with an 8-bit scale relative to it, and in them
// 4-bit floats or points of the E8 lattice.
#include <algorithm>

#include "cpuexec/blocks.h"
#include "cpuexec/float16.h"
#include "cpuexec/formats/codebooks.h"
#include "cpuexec/formats/e8.h"
#include "cpuexec/formats/float8.h"
#include "libcore/quantize/encode.h"
#include "libcore/quantize/packing.h"

namespace hf::quantize {
namespace {

constexpr float kLargest = 6;  // of the 4-bit floats

/// The smallest power of two that is not below x, as a code; 0 for an empty block.
uint8_t ue8m0_above(float x) {
    if (!(x > 0)) return 0;
    int exponent;  // x = mantissa * 2^exponent, mantissa in [1/2, 1)
    const bool is_power = std::frexp(x, &exponent) == 0.5f;
    return uint8_t(std::clamp(exponent - is_power + 127, 0, 254));
}

/// The smallest E4M3 number that is not below x, or the largest, as a code.
uint8_t e4m3_above(float x) {
    uint8_t low = 0, high = 0x7e;
    while (low < high) {
        const uint8_t middle = uint8_t((low + high) / 2);
        if (cpu::e4m3_hfq(middle) >= x)
            high = middle;
        else
            low = uint8_t(middle + 1);
    }
    return low;
}

struct Ue8m0 {
    static uint8_t above(float x) { return ue8m0_above(x); }
    static float value(uint8_t code) { return cpu::ue8m0_to_f32(code); }
};
struct E4m3 {
    static uint8_t above(float x) { return e4m3_above(x); }
    static float value(uint8_t code) { return cpu::e4m3_hfq(code); }
};

/// Writes the header of a row and returns the inverse of its scale before truncation.
float start_row(const float* row, size_t cols, uint8_t flags, std::byte* out) {
    const float largest = largest_magnitude(row, cols);
    const float scale = largest > 0 ? largest / kLargest : 1;
    Fp4RowHeader header = {};
    header.scale = cpu::f32_to_f16_truncated(scale);
    header.blocks = uint16_t(cols / 32);
    header.flags = flags;
    std::memcpy(out, &header, sizeof(header));
    return largest > 0 ? inverse(scale) : 0;
}

/// The scale of a block, and its values in units of both scales.
template <class Scale>
uint8_t scale_block(const float* x, float row_inverse, float* units) {
    const float largest = largest_magnitude(x, 32) * row_inverse;
    const uint8_t code = Scale::above(largest / kLargest);
    const float inv = inverse(Scale::value(code));
    for (size_t i = 0; i < 32; ++i) units[i] = x[i] * row_inverse * inv;
    return code;
}

template <class Scale>
void encode_fp4(const float* row, size_t cols, uint8_t flags, std::byte* out) {
    const float row_inverse = start_row(row, cols, flags, out);
    for (size_t b = 0; b < cols / 32; ++b) {
        auto& block = block_at<Fp4Block<4>>(out + sizeof(Fp4RowHeader), b);
        float units[32];
        uint8_t codes[32];
        block.scale = scale_block<Scale>(row + b * 32, row_inverse, units);
        nearest(units, 32, cpu::kE2M1, 16, codes);
        pack<4>(codes, 32, block.codes);
    }
}

constexpr uint8_t kUnrotated = 0, kRotated = 5, kRotatedSoa = 6;

// E8: Conway and Sloane, "Fast quantizing and decoding algorithms for lattice quantizers and
// codes", IEEE Trans. Inf. Theory 28, 1982.

/// The nearest point of D8 (integers with an even sum): if rounding gives an odd sum, the
/// coordinate that was rounded most is rounded the other way.
void nearest_d8(const float* x, float* point) {
    size_t worst = 0;
    float most = -1;
    int sum = 0;
    for (size_t i = 0; i < 8; ++i) {
        point[i] = std::round(x[i]);
        sum += int(point[i]);
        const float error = std::fabs(x[i] - point[i]);
        if (error > most) {
            most = error;
            worst = i;
        }
    }
    if (sum % 2) point[worst] += x[worst] < point[worst] ? -1.0f : 1.0f;
}

/// Squared distance of x from a point of the lattice, or of its coset by 1/2.
float nearest_in_coset(const float* x, float half, float* point) {
    float shifted[8], distance = 0;
    for (size_t i = 0; i < 8; ++i) shifted[i] = x[i] - half;
    nearest_d8(shifted, point);
    for (size_t i = 0; i < 8; ++i) distance += (shifted[i] - point[i]) * (shifted[i] - point[i]);
    return distance;
}

/// The codeword of n bits a weight. What does not fit its field is clamped; if that makes the sum
/// odd, the last coordinate gives way by one.
template <unsigned n>
uint32_t e8_word(const float* x) {
    float whole[8], halves[8];
    const bool half = nearest_in_coset(x, 0.5f, halves) < nearest_in_coset(x, 0, whole);
    constexpr int kMost = (1 << n) - 1;
    int e[8], sum = 0;
    for (size_t i = 0; i < 8; ++i) {
        e[i] = std::clamp(int((half ? halves : whole)[i]) + cpu::E8<n>::bias, 0, kMost);
        sum += e[i];
    }
    if (sum % 2) e[7] += e[7] < kMost ? 1 : -1;
    uint32_t word = uint32_t(half) << (8 * n - 1) | uint32_t(e[7] / 2) << 7 * n;
    for (size_t i = 0; i < 7; ++i) word |= uint32_t(e[i]) << n * i;
    return word;
}

/// The scale of a block; writes four codewords.
template <unsigned n>
uint8_t encode_e8_block(const float* x, float row_inverse, uint8_t* codes) {
    float units[32];
    const uint8_t scale = scale_block<E4m3>(x, row_inverse, units);
    for (float& u : units) u /= cpu::E8<n>::step;
    for (size_t w = 0; w < 4; ++w) {
        const uint32_t word = e8_word<n>(units + 8 * w);
        std::memcpy(codes + w * n, &word, n);
    }
    return scale;
}

}  // namespace

void hfp4(const float* row, size_t cols, std::byte* out, std::byte*) {
    encode_fp4<Ue8m0>(row, cols, kUnrotated, out);
}
void mfp4(const float* row, size_t cols, std::byte* out, std::byte*) {
    encode_fp4<Ue8m0>(row, cols, kRotated, out);
}
void mfp4p(const float* row, size_t cols, std::byte* out, std::byte*) {
    encode_fp4<E4m3>(row, cols, kRotated, out);
}

template <unsigned n>
void e8(const float* row, size_t cols, std::byte* out, std::byte*) {
    const float row_inverse = start_row(row, cols, kRotated, out);
    for (size_t b = 0; b < cols / 32; ++b) {
        auto& block = block_at<Fp4Block<n>>(out + sizeof(Fp4RowHeader), b);
        block.scale = encode_e8_block<n>(row + b * 32, row_inverse, block.codes);
    }
}

void e8_soa(const float* row, size_t cols, std::byte* out, std::byte*) {
    const float row_inverse = start_row(row, cols, kRotatedSoa, out);
    const size_t blocks = cols / 32, padded = (blocks + 15) / 16 * 16;
    auto* scales = reinterpret_cast<uint8_t*>(out + sizeof(Fp4RowHeader));
    std::fill_n(scales + blocks, padded - blocks, uint8_t(0));
    for (size_t b = 0; b < blocks; ++b)
        scales[b] = encode_e8_block<4>(row + b * 32, row_inverse, scales + padded + b * 16);
}

template void e8<2>(const float*, size_t, std::byte*, std::byte*);
template void e8<3>(const float*, size_t, std::byte*, std::byte*);
template void e8<4>(const float*, size_t, std::byte*, std::byte*);

}  // namespace hf::quantize
