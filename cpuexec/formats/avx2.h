// AVX2 under the integer dots: 32 codes or 8 sums in a vector, 16 sums or floats in two.
#pragma once

#include "cpuexec/formats/dot_shape.h"
#include "cpuexec/simd.h"

namespace hf::cpu::avx2 {

struct Isa {};
using Bytes = __m256i;
inline constexpr size_t kHalves = 2;  // vectors of 64 codes, or of 16 sums
inline constexpr size_t kTile = 2;    // columns that are multiplied at once
struct Ints {
    __m256i v[kHalves];
};
struct Floats {
    __m256 v[kHalves];
};

HF_AVX2_INLINE __m256i load_bytes(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
HF_AVX2_INLINE __m128i load_16(const std::byte* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
/// 16 bytes from each of two places.
HF_AVX2_INLINE __m256i load_two(const std::byte* first, const std::byte* second) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(first)), load_16(second), 1);
}
HF_AVX2_INLINE __m256 load_floats(const std::byte* from) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
}
HF_AVX2_INLINE __m256i subtract(__m256i a, __m256i b) {
    return _mm256_sub_epi32(a, b);
}
HF_AVX2_INLINE __m256 to_floats(__m256i v) {
    return _mm256_cvtepi32_ps(v);
}
HF_AVX2_INLINE __m256 times(__m256 a, __m256 b) {
    return _mm256_mul_ps(a, b);
}
HF_AVX2_INLINE __m256 fused(__m256 a, __m256 b, __m256 c) {
    return _mm256_fmadd_ps(a, b, c);
}

HF_AVX2_INLINE __m256i low_nibbles(__m256i bytes) {
    return _mm256_and_si256(bytes, _mm256_set1_epi8(15));
}
HF_AVX2_INLINE __m256i high_nibbles(__m256i bytes) {
    return low_nibbles(_mm256_srli_epi16(bytes, 4));
}

/// In each 128-bit lane the sums of four vectors, one after the other.
HF_AVX2_INLINE __m256i add_rows(const Bytes (&rows)[kStreams]) {
    const __m256i a = _mm256_add_epi32(_mm256_unpacklo_epi32(rows[0], rows[1]),
                                       _mm256_unpackhi_epi32(rows[0], rows[1]));
    const __m256i b = _mm256_add_epi32(_mm256_unpacklo_epi32(rows[2], rows[3]),
                                       _mm256_unpackhi_epi32(rows[2], rows[3]));
    return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

/// The sum of both lanes of a, then that of b.
HF_AVX2_INLINE __m256i add_lanes(__m256i a, __m256i b) {
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}

/// Four terms from piles where a term has one lane, two lanes, or one half that stands for four.
HF_AVX2_INLINE Ints join(const Bytes (&p)[1][2]) {
    return {{p[0][0], p[0][1]}};
}
HF_AVX2_INLINE Ints join(const Bytes (&p)[2][2]) {
    return {{add_lanes(p[0][0], p[0][1]), add_lanes(p[1][0], p[1][1])}};
}
HF_AVX2_INLINE Ints join(const Bytes (&p)[4][1]) {
    return {{add_lanes(p[0][0], p[1][0]), add_lanes(p[2][0], p[3][0])}};
}

/// acc = more in the first `terms` of four.
HF_AVX2_INLINE void take_terms(size_t terms, const Floats& more, Floats& acc) {
    for (size_t h = 0; h < kHalves; ++h) {
        const __m256 term =
            _mm256_add_ps(_mm256_setr_ps(0, 0, 0, 0, 1, 1, 1, 1), _mm256_set1_ps(float(2 * h)));
        const __m256 taken = _mm256_cmp_ps(term, _mm256_set1_ps(float(terms)), _CMP_LT_OQ);
        acc.v[h] = _mm256_blendv_ps(acc.v[h], more.v[h], taken);
    }
}

/// (a[0] + a[2]) + (a[1] + a[3]) of four rows.
HF_AVX2_INLINE void store_sums(const Floats& a, float* y) {
    const __m256 halves = _mm256_add_ps(a.v[0], a.v[1]);
    _mm_storeu_ps(y, _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1)));
}

// Products. ------------------------------------------------------------------------------------

template <class F>
inline constexpr bool subtracts_offset = F::code_max > 0 && F::prepare.offset != 0;

/// Codes times the bytes of one plane, times `factor`. As many products are added in 16 bits as
/// cannot overflow.
template <class F, Activations a, size_t n>
HF_AVX2_INLINE __m256i plane_products(const Bytes (&codes)[n], const std::byte* x, size_t k,
                                      size_t h, int16_t factor) {
    using S = Shape<F>;
    constexpr size_t most = std::min<size_t>(n, 32767 / (F::code_max * 256));
    __m256i sum = _mm256_setzero_si256(), words = _mm256_setzero_si256();
    HF_UNROLL for (size_t j = 0; j < n; ++j) {
        const std::byte* at = x + S::codes_at(a, k, j % S::parts) + 32 * (h + j / S::parts);
        words = _mm256_add_epi16(words, _mm256_maddubs_epi16(codes[j], load_bytes(at)));
        if ((j + 1) % most == 0 || j + 1 == n) {
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(words, _mm256_set1_epi16(factor)));
            words = _mm256_setzero_si256();
        }
    }
    return sum;
}

/// Signed bytes times signed bytes: |code| * (x with the code's sign).
HF_AVX2_INLINE __m256i signed_products(__m256i codes, __m256i x) {
    const __m256i words = _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(x, codes));
    return _mm256_madd_epi16(words, _mm256_set1_epi16(1));
}

/// Signed bytes times 16 bits: even bytes, then odd ones, so that products stay in their lanes.
HF_AVX2_INLINE __m256i signed_products(__m256i codes, __m256i high, __m256i low) {
    const __m256i even_x = _mm256_add_epi16(_mm256_slli_epi16(high, 8),
                                            _mm256_srai_epi16(_mm256_slli_epi16(low, 8), 8));
    const __m256i odd_x = _mm256_add_epi16(
        _mm256_and_si256(high, _mm256_set1_epi16(int16_t(0xff00))), _mm256_srai_epi16(low, 8));
    const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 8);
    const __m256i odd = _mm256_srai_epi16(codes, 8);
    return _mm256_add_epi32(_mm256_madd_epi16(even, even_x), _mm256_madd_epi16(odd, odd_x));
}

/// The sums, dword by dword, of a pile's codes times their activations.
template <class F, Activations a, size_t n>
HF_AVX2_INLINE __m256i products(const Bytes (&codes)[n], const std::byte* x, size_t k, size_t h) {
    using S = Shape<F>;
    if constexpr (F::code_max > 0) {
        if constexpr (a == Activations::int8) return plane_products<F, a>(codes, x, k, h, 1);
        return _mm256_add_epi32(plane_products<F, a>(codes, x, k, h, 256),
                                plane_products<F, a>(codes, x + 64, k, h, 1));
    }
    __m256i sum = _mm256_setzero_si256();
    HF_UNROLL for (size_t j = 0; j < n; ++j) {
        const std::byte* at = x + S::codes_at(a, k, j % S::parts) + 32 * (h + j / S::parts);
        if constexpr (a == Activations::int8)
            sum = _mm256_add_epi32(sum, signed_products(codes[j], load_bytes(at)));
        else
            sum = _mm256_add_epi32(sum,
                                   signed_products(codes[j], load_bytes(at), load_bytes(at + 64)));
    }
    return sum;
}

// Scales of four terms and four rows. ------------------------------------------------------------

HF_AVX2_INLINE __m256 f16_to_floats(__m128i words) {
    return _mm256_cvtph_ps(words);
}

/// Of one row the f16 numbers of four terms, `distance` bytes apart, in words 0 .. 3. Each load has
/// its number in the right word, so that nothing has to be moved.
template <size_t distance>
HF_AVX2_INLINE __m128i load_f16_row(const std::byte* from) {
    constexpr size_t next = distance - 2;
    static_assert(3 * next + 16 <= 4 * distance, "a load would reach behind the fourth block");
    const __m128i a = _mm_blend_epi16(load_16(from), load_16(from + next), 1 << 1);
    const __m128i b = _mm_blend_epi16(load_16(from + 2 * next), load_16(from + 3 * next), 1 << 3);
    return _mm_blend_epi32(a, b, 1 << 1);
}
/// Of four rows, from `at` on.
template <size_t distance>
HF_AVX2_INLINE Floats load_f16(Rows w, size_t at) {
    __m128i rows[kStreams];
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) rows[s] = load_f16_row<distance>(w[s] + at);
    const __m128i a = _mm_unpacklo_epi16(rows[0], rows[1]);
    const __m128i b = _mm_unpacklo_epi16(rows[2], rows[3]);
    return {{f16_to_floats(_mm_unpacklo_epi32(a, b)), f16_to_floats(_mm_unpackhi_epi32(a, b))}};
}

/// Of one row the pairs of f16 of four terms, that of term t at F::pair_at(t), in dwords 0 .. 3;
/// loaded likewise.
template <class F>
HF_AVX2_INLINE __m128i load_pairs_row(const std::byte* w) {
    if constexpr (F::pair_at(1) == F::pair_at(0)) {  // two terms share one
        const __m128i two = _mm_blend_epi32(load_16(w), load_16(w + F::pair_at(2) - 8), 1 << 2);
        return _mm_shuffle_epi32(two, _MM_SHUFFLE(2, 2, 0, 0));
    }
    __m128i all = load_16(w);
    HF_UNROLL for (size_t t = 1; t < 4; ++t) {
        const __m128i one = load_16(w + F::pair_at(t) - 4 * t);
        all = t == 1   ? _mm_blend_epi32(all, one, 1 << 1)
              : t == 2 ? _mm_blend_epi32(all, one, 1 << 2)
                       : _mm_blend_epi32(all, one, 1 << 3);
    }
    return all;
}
/// The pairs of four rows, term by term.
template <class F>
HF_AVX2_INLINE void load_pairs(Rows w, __m128i (&terms)[4]) {
    __m128i rows[kStreams];
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) rows[s] = load_pairs_row<F>(w[s]);
    const __m128i a = _mm_unpacklo_epi32(rows[0], rows[1]);
    const __m128i b = _mm_unpacklo_epi32(rows[2], rows[3]);
    const __m128i c = _mm_unpackhi_epi32(rows[0], rows[1]);
    const __m128i d = _mm_unpackhi_epi32(rows[2], rows[3]);
    terms[0] = _mm_unpacklo_epi64(a, b);
    terms[1] = _mm_unpackhi_epi64(a, b);
    terms[2] = _mm_unpacklo_epi64(c, d);
    terms[3] = _mm_unpackhi_epi64(c, d);
}
template <class F>
HF_AVX2_INLINE void load_f16_pairs(Rows w, Floats& scale, Floats& zero) {
    __m128i terms[4];
    load_pairs<F>(w, terms);
    HF_UNROLL for (size_t h = 0; h < kHalves; ++h) {
        const __m128i one = terms[2 * h], two = terms[2 * h + 1], low = _mm_set1_epi32(0xffff);
        scale.v[h] =
            f16_to_floats(_mm_packus_epi32(_mm_and_si128(one, low), _mm_and_si128(two, low)));
        zero.v[h] =
            f16_to_floats(_mm_packus_epi32(_mm_srli_epi32(one, 16), _mm_srli_epi32(two, 16)));
    }
}

/// Pairs of f32, likewise.
HF_AVX2_INLINE __m128 load_two_pairs(const std::byte* a, const std::byte* b) {
    return _mm_castsi128_ps(_mm_set_epi64x(load<int64_t>(b), load<int64_t>(a)));
}
template <class F>
HF_AVX2_INLINE void load_f32_pairs(Rows w, Floats& scale, Floats& zero) {
    HF_UNROLL for (size_t h = 0; h < kHalves; ++h) {
        const size_t one = F::pair_at(2 * h), two = F::pair_at(2 * h + 1);
        const __m256 low = _mm256_set_m128(load_two_pairs(w[0] + two, w[1] + two),
                                           load_two_pairs(w[0] + one, w[1] + one));
        const __m256 high = _mm256_set_m128(load_two_pairs(w[2] + two, w[3] + two),
                                            load_two_pairs(w[2] + one, w[3] + one));
        scale.v[h] = _mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0));
        zero.v[h] = _mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1));
    }
}

#define HF_LEVEL HF_AVX2 HF_UNCHECKED
#define HF_LEVEL_INLINE HF_AVX2_INLINE
#include "cpuexec/formats/dot_driver.h"
#undef HF_LEVEL
#undef HF_LEVEL_INLINE

}  // namespace hf::cpu::avx2
