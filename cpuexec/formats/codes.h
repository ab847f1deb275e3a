// How packed codes become floats, plainly and in AVX2 with the same bits; or the integers and the
// scales of which these floats are made.
//
// A format's decoder is written once over `Plain`, `Avx2` or `Terms`. They have, for n codes q:
//     affine<width>(codes, n, scale, zero, out)        out[i] = scale * q[i] + zero
//     lookup<width>(codes, n, levels, scale, out)      out[i] = scale * levels[q[i]]
//     lookup_halves(nibbles, n, levels, scale, out)    the same, nibbles in halves
//     affine_bytes(bits, n, offset, scale, zero, out)  out[i] = scale * (q[i] - offset) + zero
//     affine_bytes(low, high, n, ...)                  the same, q[i] the sum of two fields
//     signed_bytes(q, n, scale, out)                   out[i] = scale * q[i]
// Nothing is fused. A zero of kNone adds nothing, not even to the sign of a zero; a scale of 1
// changes nothing. The first two read a bit stream that starts with a byte. n is a multiple of 8
// (halves: 16), and nothing is read but the bytes of those n codes.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "cpuexec/simd.h"

namespace hf::cpu {

/// The floats of all codes of up to 4 bits; those of fewer bits use the first ones.
using Levels = float[16];

inline constexpr float kNone = -0.0f;

/// A field of each byte: (bytes[i] >> shift & mask) << up.
struct Field {
    const uint8_t* bytes;
    int shift, mask, up = 0;
};

/// Code i of a bit stream.
template <unsigned width>
HF_INLINE uint32_t code(const uint8_t* codes, size_t i) {
    const size_t bit = i * width;
    uint32_t bits = codes[bit / 8];
    if (bit % 8 + width > 8) bits |= uint32_t(codes[bit / 8 + 1]) << 8;
    return bits >> bit % 8 & ((1u << width) - 1);
}

HF_INLINE int field(const Field& f, size_t i) {
    return (f.bytes[i] >> f.shift & f.mask) << f.up;
}

struct Plain {
    template <unsigned width>
    static void affine(const uint8_t* codes, size_t n, float scale, float zero, float* out) {
        for (size_t i = 0; i < n; ++i) out[i] = scale * float(code<width>(codes, i)) + zero;
    }
    template <unsigned width>
    static void lookup(const uint8_t* codes, size_t n, const Levels& levels, float scale,
                       float* out) {
        for (size_t i = 0; i < n; ++i) out[i] = scale * levels[code<width>(codes, i)];
    }
    static void lookup_halves(const uint8_t* nibbles, size_t n, const Levels& levels, float scale,
                              float* out) {
        for (size_t i = 0; i < n / 2; ++i) {
            out[i] = scale * levels[nibbles[i] & 15];
            out[i + n / 2] = scale * levels[nibbles[i] >> 4];
        }
    }
    static void affine_bytes(const Field& bits, size_t n, int offset, float scale, float zero,
                             float* out) {
        for (size_t i = 0; i < n; ++i) out[i] = scale * float(field(bits, i) - offset) + zero;
    }
    static void affine_bytes(const Field& low, const Field& high, size_t n, int offset, float scale,
                             float zero, float* out) {
        for (size_t i = 0; i < n; ++i)
            out[i] = scale * float(field(low, i) + field(high, i) - offset) + zero;
    }
    HF_INLINE static void signed_bytes(const int8_t* q, size_t n, float scale,
                                       float* __restrict out) {
        for (size_t i = 0; i < n; ++i) out[i] = scale * float(q[i]);
    }
};

/// Leaves what a weight is made of in three planes: the integer at out[i], scale and zero of its
/// term at out[i + kTermPlane] and out[i + 2 * kTermPlane]. For formats with integer dots.
inline constexpr size_t kTermPlane = 1024 + 256;  // a chunk, or more where a row ends in a group
struct Terms {
    static void set(float q, float scale, float zero, float* out) {
        out[0] = q;
        out[kTermPlane] = scale;
        out[2 * kTermPlane] = zero;
    }
    template <unsigned width>
    static void affine(const uint8_t* codes, size_t n, float scale, float zero, float* out) {
        for (size_t i = 0; i < n; ++i) set(float(code<width>(codes, i)), scale, zero, out + i);
    }
    /// 2 where levels have halves, else 1: how many times larger the integers are.
    static float unit(const Levels& levels) {
        for (float level : levels)
            if (level != float(int(level))) return 2;
        return 1;
    }
    template <unsigned width>
    static void lookup(const uint8_t* codes, size_t n, const Levels& levels, float scale,
                       float* out) {
        const float times = unit(levels);
        for (size_t i = 0; i < n; ++i)
            set(levels[code<width>(codes, i)] * times, scale / times, kNone, out + i);
    }
    static void lookup_halves(const uint8_t* nibbles, size_t n, const Levels& levels, float scale,
                              float* out) {
        const float times = unit(levels);
        for (size_t i = 0; i < n / 2; ++i) {
            set(levels[nibbles[i] & 15] * times, scale / times, kNone, out + i);
            set(levels[nibbles[i] >> 4] * times, scale / times, kNone, out + i + n / 2);
        }
    }
    static void affine_bytes(const Field& bits, size_t n, int offset, float scale, float zero,
                             float* out) {
        for (size_t i = 0; i < n; ++i) set(float(field(bits, i) - offset), scale, zero, out + i);
    }
    static void affine_bytes(const Field& low, const Field& high, size_t n, int offset, float scale,
                             float zero, float* out) {
        for (size_t i = 0; i < n; ++i)
            set(float(field(low, i) + field(high, i) - offset), scale, zero, out + i);
    }
    static void signed_bytes(const int8_t* q, size_t n, float scale, float* out) {
        for (size_t i = 0; i < n; ++i) set(float(q[i]), scale, kNone, out + i);
    }
};

/// The first n bytes, n up to 8, as a number.
template <unsigned n>
HF_INLINE uint64_t load_bytes(const uint8_t* from) {
    if constexpr (n == 1) {
        return *from;
    } else if constexpr (std::has_single_bit(n)) {
        std::conditional_t<n == 2, uint16_t, std::conditional_t<n == 4, uint32_t, uint64_t>> value;
        std::memcpy(&value, from, n);
        return value;
    } else {
        constexpr unsigned low = std::bit_floor(n);
        return load_bytes<low>(from) | load_bytes<n - low>(from + low) << 8 * low;
    }
}

/// For each of eight lanes the two bytes that hold its code, and where the code begins in them.
template <unsigned width>
struct CodeLanes {
    alignas(32) int8_t bytes[32] = {};
    alignas(32) int32_t shifts[8] = {};
    constexpr CodeLanes() {
        for (int i = 0; i < 8; ++i) {
            bytes[4 * i] = int8_t(i * width / 8);
            bytes[4 * i + 1] = int8_t(i * width / 8 + 1);
            bytes[4 * i + 2] = bytes[4 * i + 3] = -1;  // zero
            shifts[i] = i * width % 8;
        }
    }
};
template <unsigned width>
inline constexpr CodeLanes<width> kCodeLanes;

/// Eight codes, one in each 32-bit lane. Reads `width` bytes.
template <unsigned width>
HF_AVX2_INLINE __m256i eight_codes(const uint8_t* codes) {
    static_assert(width <= 6);
    const uint64_t bits = load_bytes<width>(codes);
    const __m256i mask = _mm256_set1_epi32((1 << width) - 1);
    if constexpr (width <= 4) {
        const __m256i shifts = _mm256_setr_epi32(0, width, 2 * width, 3 * width, 4 * width,
                                                 5 * width, 6 * width, 7 * width);
        return _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(int(bits)), shifts), mask);
    }
    const auto* lanes = reinterpret_cast<const __m256i*>(kCodeLanes<width>.bytes);
    const __m256i pairs =
        _mm256_shuffle_epi8(_mm256_set1_epi64x(int64_t(bits)), _mm256_load_si256(lanes));
    return _mm256_and_si256(_mm256_srlv_epi32(pairs, _mm256_load_si256(lanes + 1)), mask);
}

/// levels[code] in each lane.
template <unsigned width>
HF_AVX2_INLINE __m256 look_up(const Levels& levels, __m256i codes) {
    const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(levels), codes);
    if constexpr (width < 4) return low;
    const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(levels + 8), codes);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28)));
}

HF_AVX2_INLINE __m256i eight_bytes(const uint8_t* from) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}

HF_AVX2_INLINE __m256i eight_fields(const Field& f, size_t i) {
    const __m256i shifted = _mm256_srl_epi32(eight_bytes(f.bytes + i), _mm_cvtsi32_si128(f.shift));
    const __m256i masked = _mm256_and_si256(shifted, _mm256_set1_epi32(f.mask));
    return _mm256_sll_epi32(masked, _mm_cvtsi32_si128(f.up));
}

HF_AVX2_INLINE void store_affine(__m256i q, float scale, float zero, float* out) {
    const __m256 product = _mm256_mul_ps(_mm256_set1_ps(scale), _mm256_cvtepi32_ps(q));
    _mm256_storeu_ps(out, _mm256_add_ps(product, _mm256_set1_ps(zero)));
}

struct Avx2 {
    template <unsigned width>
    HF_AVX2 static void affine(const uint8_t* codes, size_t n, float scale, float zero,
                               float* out) {
        for (size_t i = 0; i < n; i += 8, codes += width)
            store_affine(eight_codes<width>(codes), scale, zero, out + i);
    }
    template <unsigned width>
    HF_AVX2 static void lookup(const uint8_t* codes, size_t n, const Levels& levels, float scale,
                               float* out) {
        const __m256 scales = _mm256_set1_ps(scale);
        for (size_t i = 0; i < n; i += 8, codes += width) {
            const __m256 level = look_up<width>(levels, eight_codes<width>(codes));
            _mm256_storeu_ps(out + i, _mm256_mul_ps(scales, level));
        }
    }
    HF_AVX2 static void lookup_halves(const uint8_t* nibbles, size_t n, const Levels& levels,
                                      float scale, float* out) {
        const __m256 scales = _mm256_set1_ps(scale);
        for (size_t i = 0; i < n / 2; i += 8) {
            const __m256i bytes = eight_bytes(nibbles + i);
            const __m256 low = look_up<4>(levels, _mm256_and_si256(bytes, _mm256_set1_epi32(15)));
            const __m256 high = look_up<4>(levels, _mm256_srli_epi32(bytes, 4));
            _mm256_storeu_ps(out + i, _mm256_mul_ps(scales, low));
            _mm256_storeu_ps(out + i + n / 2, _mm256_mul_ps(scales, high));
        }
    }
    HF_AVX2 static void affine_bytes(const Field& bits, size_t n, int offset, float scale,
                                     float zero, float* out) {
        const __m256i offsets = _mm256_set1_epi32(offset);
        for (size_t i = 0; i < n; i += 8)
            store_affine(_mm256_sub_epi32(eight_fields(bits, i), offsets), scale, zero, out + i);
    }
    HF_AVX2 static void affine_bytes(const Field& low, const Field& high, size_t n, int offset,
                                     float scale, float zero, float* out) {
        const __m256i offsets = _mm256_set1_epi32(offset);
        for (size_t i = 0; i < n; i += 8) {
            const __m256i q = _mm256_add_epi32(eight_fields(low, i), eight_fields(high, i));
            store_affine(_mm256_sub_epi32(q, offsets), scale, zero, out + i);
        }
    }
    HF_AVX2 static void signed_bytes(const int8_t* q, size_t n, float scale, float* out) {
        for (size_t i = 0; i < n; i += 8) {
            const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(q + i));
            const __m256 values = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
            _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_set1_ps(scale), values));
        }
    }
};

}  // namespace hf::cpu
