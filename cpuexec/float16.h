// The two 16-bit float formats, in plain code that gives the bits of the F16C instructions.
//
//   binary16   s eeeee mmmmmmmmmm         exponent bias 15, subnormals count
//   bfloat16   s eeeeeeee mmmmmmm         the upper half of a float32
//
// Widening is exact. NaNs stay NaNs and become quiet. Assumes the default rounding mode, and that
// subnormals are not flushed.
#pragma once

#include <bit>
#include <cstdint>

namespace hf::cpu {

inline constexpr uint32_t kF32Infinity = 0x7f800000;

inline float f16_to_f32(uint16_t h) {
    const uint32_t sign = uint32_t(h & 0x8000) << 16;
    const uint32_t shifted = uint32_t(h & 0x7fff) << 13;  // exponent still biased by 15
    if (shifted < 0x0f800000) {
        const float magnitude = std::bit_cast<float>(shifted) * 0x1p112f;  // 2^(127 - 15)
        return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
    }
    const uint32_t quiet = shifted > 0x0f800000 ? 0x00400000 : 0;
    return std::bit_cast<float>(sign | kF32Infinity | quiet | shifted);
}

/// Nearest, ties to even; 65520 and more become infinity.
inline uint16_t f32_to_f16(float f) {
    const uint32_t bits = std::bit_cast<uint32_t>(f);
    const uint32_t sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
    if (a > kF32Infinity) return uint16_t(sign | 0x7e00 | (a >> 13 & 0x3ff));
    if (a >= 0x477ff000) return uint16_t(sign | 0x7c00);
    if (a < 0x38800000) {  // below 2^-14: adding 1/2 rounds to a multiple of 2^-24
        const float sum = std::bit_cast<float>(a) + 0.5f;
        return uint16_t(sign | (std::bit_cast<uint32_t>(sum) - 0x3f000000));
    }
    return uint16_t(sign | (a - (112u << 23) + 0xfff + (a >> 13 & 1)) >> 13);
}

/// Towards zero, as the headers of HFQ formats are written; 65536 and more become infinity.
inline uint16_t f32_to_f16_truncated(float f) {
    const uint32_t bits = std::bit_cast<uint32_t>(f);
    const uint32_t sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
    if (a > kF32Infinity) return uint16_t(sign | 0x7e00 | (a >> 13 & 0x3ff));
    if (a >= 0x47800000) return uint16_t(sign | 0x7c00);
    if (a < 0x38800000) return uint16_t(sign | uint32_t(std::bit_cast<float>(a) * 0x1p24f));
    return uint16_t(sign | (a - (112u << 23)) >> 13);
}

inline float bf16_to_f32(uint16_t h) {
    return std::bit_cast<float>(uint32_t(h) << 16);
}

/// Nearest, ties to even.
inline uint16_t f32_to_bf16(float f) {
    const uint32_t bits = std::bit_cast<uint32_t>(f);
    if ((bits & 0x7fffffff) > kF32Infinity) return uint16_t(bits >> 16 | 0x40);
    return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace hf::cpu
