// Scales of formats whose runs have small integers for scales, which a float of the block turns
// into those of terms.
//
// A format F brings the numbers of the v-th four terms of a block, and inherits RunScales<F>:
//     F::runs(w, v, runs)
#pragma once

#include "cpuexec/formats/avx2.h"
#include "cpuexec/formats/avx512.h"

namespace hf::cpu {

/// Of four runs and four rows: scale = d * scales. zero = dmin * mins, where the format has zeros.
struct Runs {
    __m128 d, dmin;        // of row r in lane r; dmin has the sign of zeros
    __m128i scales, mins;  // of run t and row r in byte 4 t + r, signed
};

/// Four bytes of each row.
HF_AVX2_INLINE __m128i load_rows(Rows w, size_t at) {
    return _mm_setr_epi32(load<int32_t>(w[0] + at), load<int32_t>(w[1] + at),
                          load<int32_t>(w[2] + at), load<int32_t>(w[3] + at));
}
/// From byte 4 r + t to byte 4 t + r.
HF_AVX2_INLINE __m128i rows_to_runs(__m128i bytes) {
    return _mm_shuffle_epi8(bytes,
                            _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
}
/// Bits of all bytes: (bytes >> shift & mask) << up, each of them in its own byte.
HF_AVX2_INLINE __m128i field_of(__m128i bytes, int shift, int mask, int up = 0) {
    const __m128i moved =
        shift >= up ? _mm_srli_epi16(bytes, shift - up) : _mm_slli_epi16(bytes, up - shift);
    return _mm_and_si128(moved, _mm_set1_epi8(char(mask << up)));
}

/// An f16 number of each row.
HF_AVX2_INLINE __m128 load_f16_rows(Rows w, size_t at) {
    return _mm_cvtph_ps(_mm_setr_epi16(load<int16_t>(w[0] + at), load<int16_t>(w[1] + at),
                                       load<int16_t>(w[2] + at), load<int16_t>(w[3] + at), 0, 0, 0,
                                       0));
}
/// d and -dmin from a pair of f16 of each row.
HF_AVX2_INLINE void set_d_dmin(__m128i pairs, Runs& runs) {
    const __m128i apart = _mm_shuffle_epi8(
        pairs, _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    runs.d = _mm_cvtph_ps(apart);
    runs.dmin = _mm_xor_ps(_mm_cvtph_ps(_mm_srli_si128(apart, 8)), _mm_set1_ps(-0.0f));
}

HF_AVX2_INLINE void scale_runs(__m128 d, __m128i integers, avx2::Floats& out) {
    const __m256 rows = _mm256_set_m128(d, d);
    out.v[0] = _mm256_mul_ps(rows, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(integers)));
    const __m128i rest = _mm_srli_si128(integers, 8);
    out.v[1] = _mm256_mul_ps(rows, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(rest)));
}
HF_AVX512_INLINE void scale_runs(__m128 d, __m128i integers, avx512::Floats& out) {
    out.v[0] = _mm512_mul_ps(_mm512_broadcast_f32x4(d),
                             _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(integers)));
}

template <class F>
struct RunScales {
    static constexpr bool exact_products = true;  // of a scale and a code: 11 + 7 bits and 6
    HF_AVX2_INLINE static void scales(avx2::Isa, Rows w, size_t v, avx2::Floats& scale,
                                      avx2::Floats& zero) {
        Runs runs;
        F::runs(w, v, runs);
        scale_runs(runs.d, runs.scales, scale);
        if constexpr (F::prepare.zeros) scale_runs(runs.dmin, runs.mins, zero);
    }
    HF_AVX512_INLINE static void scales(avx512::Isa, Rows w, size_t v, avx512::Floats& scale,
                                        avx512::Floats& zero) {
        Runs runs;
        F::runs(w, v, runs);
        scale_runs(runs.d, runs.scales, scale);
        if constexpr (F::prepare.zeros) scale_runs(runs.dmin, runs.mins, zero);
    }
};

}  // namespace hf::cpu
