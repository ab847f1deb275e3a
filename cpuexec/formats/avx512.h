// AVX-512 (F, BW, DQ, VL, VBMI, VNNI) under the integer dots: 64 codes or 16 sums in a vector.
#pragma once

#include "cpuexec/formats/avx2.h"
#include "cpuexec/formats/dot_shape.h"
#include "cpuexec/simd.h"

namespace hf::cpu::avx512 {

struct Isa {};
using Bytes = __m512i;
inline constexpr size_t kHalves = 1;  // vectors of 64 codes, or of 16 sums
inline constexpr size_t kTile = 4;    // columns that are multiplied at once
struct Ints {
    __m512i v[kHalves];
};
struct Floats {
    __m512 v[kHalves];
};

HF_AVX512_INLINE __m512i load_bytes(const std::byte* from) {
    return _mm512_loadu_si512(from);
}
HF_AVX512_INLINE __m256i load_32(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
HF_AVX512_INLINE __m128i load_16(const std::byte* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
/// 32 bytes from each of two places.
HF_AVX512_INLINE __m512i load_two(const std::byte* first, const std::byte* second) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(load_32(first)), load_32(second), 1);
}
/// 16 bytes from each of four places.
HF_AVX512_INLINE __m512i load_four(const std::byte* a, const std::byte* b, const std::byte* c,
                                   const std::byte* d) {
    __m512i all = _mm512_castsi128_si512(load_16(a));
    all = _mm512_mask_broadcast_i32x4(all, 0x00f0, load_16(b));
    all = _mm512_mask_broadcast_i32x4(all, 0x0f00, load_16(c));
    return _mm512_mask_broadcast_i32x4(all, 0xf000, load_16(d));
}
HF_AVX512_INLINE __m512i load_four(const std::byte* from, size_t distance) {
    return load_four(from, from + distance, from + 2 * distance, from + 3 * distance);
}
HF_AVX512_INLINE __m512 load_floats(const std::byte* from) {
    return _mm512_loadu_ps(from);
}
HF_AVX512_INLINE __m512i subtract(__m512i a, __m512i b) {
    return _mm512_sub_epi32(a, b);
}
HF_AVX512_INLINE __m512 to_floats(__m512i v) {
    return _mm512_cvtepi32_ps(v);
}
HF_AVX512_INLINE __m512 times(__m512 a, __m512 b) {
    return _mm512_mul_ps(a, b);
}
HF_AVX512_INLINE __m512 fused(__m512 a, __m512 b, __m512 c) {
    return _mm512_fmadd_ps(a, b, c);
}

HF_AVX512_INLINE __m512i low_nibbles(__m512i bytes) {
    return _mm512_and_si512(bytes, _mm512_set1_epi8(15));
}
HF_AVX512_INLINE __m512i high_nibbles(__m512i bytes) {
    return low_nibbles(_mm512_srli_epi16(bytes, 4));
}

/// In each 128-bit lane the sums of four vectors, one after the other.
HF_AVX512_INLINE __m512i add_rows(const Bytes (&rows)[kStreams]) {
    const __m512i a = _mm512_add_epi32(_mm512_unpacklo_epi32(rows[0], rows[1]),
                                       _mm512_unpackhi_epi32(rows[0], rows[1]));
    const __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi32(rows[2], rows[3]),
                                       _mm512_unpackhi_epi32(rows[2], rows[3]));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/// Lanes 0 + 1 and 2 + 3 of a, then those of b.
HF_AVX512_INLINE __m512i add_lanes(__m512i a, __m512i b) {
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

/// Four terms from piles where a term has one lane, two or four.
HF_AVX512_INLINE Ints join(const Bytes (&p)[1][1]) {
    return {{p[0][0]}};
}
HF_AVX512_INLINE Ints join(const Bytes (&p)[2][1]) {
    return {{add_lanes(p[0][0], p[1][0])}};
}
HF_AVX512_INLINE Ints join(const Bytes (&p)[4][1]) {
    return {{add_lanes(add_lanes(p[0][0], p[1][0]), add_lanes(p[2][0], p[3][0]))}};
}

/// acc = more in the first `terms` of four.
HF_AVX512_INLINE void take_terms(size_t terms, const Floats& more, Floats& acc) {
    const __mmask16 taken = __mmask16((1u << 4 * terms) - 1);
    acc.v[0] = _mm512_mask_mov_ps(acc.v[0], taken, more.v[0]);
}

/// (a[0] + a[2]) + (a[1] + a[3]) of four rows.
HF_AVX512_INLINE void store_sums(const Floats& a, float* y) {
    const __m256 halves =
        _mm256_add_ps(_mm512_castps512_ps256(a.v[0]), _mm512_extractf32x8_ps(a.v[0], 1));
    _mm_storeu_ps(y, _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1)));
}

// Products. ------------------------------------------------------------------------------------

template <class F>
inline constexpr bool subtracts_offset = F::prepare.offset != 0;

/// Codes times the bytes of one plane, added to `sum`. Signed codes are made 128 larger.
template <class F, Activations a, size_t n>
HF_AVX512_INLINE __m512i plane_products(__m512i sum, const Bytes (&codes)[n], const std::byte* x,
                                        size_t k) {
    HF_UNROLL for (size_t j = 0; j < n; ++j) {
        const __m512i moved =
            F::code_max > 0 ? codes[j] : _mm512_xor_si512(codes[j], _mm512_set1_epi8(int8_t(0x80)));
        sum = _mm512_dpbusd_epi32(sum, moved, load_bytes(x + Shape<F>::codes_at(a, k, j)));
    }
    return sum;
}

/// The sums, dword by dword, of a pile's codes times their activations.
template <class F, Activations a, size_t n>
HF_AVX512_INLINE __m512i products(const Bytes (&codes)[n], const std::byte* x, size_t k, size_t) {
    __m512i sum = plane_products<F, a>(_mm512_setzero_si512(), codes, x, k);
    if constexpr (a == Activations::i16)
        sum = plane_products<F, a>(_mm512_slli_epi32(sum, 8), codes, x + 64, k);
    return sum;
}

// Scales of four terms and four rows. ------------------------------------------------------------

HF_AVX512_INLINE __m512 f16_to_floats(__m256i words) {
    return _mm512_cvtph_ps(words);
}

HF_AVX512_INLINE __m512i join_lanes(__m128i a, __m128i b, __m128i c, __m128i d) {
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// Words 4t + r from two bytes at t * distance, wherever r is.
template <size_t distance>
struct WordPicks {
    alignas(64) int8_t at[64] = {};
    constexpr WordPicks() {
        for (size_t i = 0; i < 16; ++i) {
            at[2 * i] = int8_t(i / 4 * distance);
            at[2 * i + 1] = int8_t(i / 4 * distance + 1);
        }
    }
};
template <size_t distance>
inline constexpr WordPicks<distance> kWordPicks;

/// f16 numbers, those of a row `distance` bytes apart, the first one at the beginning of at least
/// 64 bytes.
template <size_t distance>
HF_AVX512_INLINE Floats load_f16_near(Rows w) {
    static_assert(3 * distance + 2 <= 64);
    const __m512i picks = _mm512_load_si512(kWordPicks<distance>.at);
    __m512i words = _mm512_permutexvar_epi8(picks, load_bytes(w[0]));
    words = _mm512_mask_permutexvar_epi8(words, 0x0c0c0c0c, picks, load_bytes(w[1]));
    words = _mm512_mask_permutexvar_epi8(words, 0x30303030, picks, load_bytes(w[2]));
    words = _mm512_mask_permutexvar_epi8(words, 0xc0c0c0c0, picks, load_bytes(w[3]));
    return {{f16_to_floats(_mm512_castsi512_si256(words))}};
}

/// The same for any distance.
template <size_t distance>
HF_AVX512_INLINE Floats load_f16(Rows w, size_t at) {
    const __m128i a = _mm_unpacklo_epi16(avx2::load_f16_row<distance>(w[0] + at),
                                         avx2::load_f16_row<distance>(w[1] + at));
    const __m128i b = _mm_unpacklo_epi16(avx2::load_f16_row<distance>(w[2] + at),
                                         avx2::load_f16_row<distance>(w[3] + at));
    return {{f16_to_floats(_mm256_set_m128i(_mm_unpackhi_epi32(a, b), _mm_unpacklo_epi32(a, b)))}};
}

/// Pairs of f16: that of term t lies at F::pair_at(t).
template <class F>
HF_AVX512_INLINE void load_f16_pairs(Rows w, Floats& scale, Floats& zero) {
    __m128i terms[4];
    avx2::load_pairs<F>(w, terms);
    const __m512i pairs = join_lanes(terms[0], terms[1], terms[2], terms[3]);
    scale.v[0] = f16_to_floats(_mm512_cvtepi32_epi16(pairs));
    zero.v[0] = f16_to_floats(_mm512_cvtepi32_epi16(_mm512_srli_epi32(pairs, 16)));
}

/// Pairs of f32, likewise.
template <class F>
HF_AVX512_INLINE void load_f32_pairs(Rows w, Floats& scale, Floats& zero) {
    __m128i low[4], high[4];  // rows 0 and 1, 2 and 3
    HF_UNROLL for (size_t t = 0; t < 4; ++t) {
        const size_t at = F::pair_at(t);
        low[t] = _mm_set_epi64x(load<int64_t>(w[1] + at), load<int64_t>(w[0] + at));
        high[t] = _mm_set_epi64x(load<int64_t>(w[3] + at), load<int64_t>(w[2] + at));
    }
    const __m512 lows = _mm512_castsi512_ps(join_lanes(low[0], low[1], low[2], low[3]));
    const __m512 highs = _mm512_castsi512_ps(join_lanes(high[0], high[1], high[2], high[3]));
    scale.v[0] = _mm512_shuffle_ps(lows, highs, _MM_SHUFFLE(2, 0, 2, 0));
    zero.v[0] = _mm512_shuffle_ps(lows, highs, _MM_SHUFFLE(3, 1, 3, 1));
}

#define HF_LEVEL HF_AVX512 HF_UNCHECKED
#define HF_LEVEL_INLINE HF_AVX512_INLINE
#include "cpuexec/formats/dot_driver.h"
#undef HF_LEVEL
#undef HF_LEVEL_INLINE

}  // namespace hf::cpu::avx512
