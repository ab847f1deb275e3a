// Scales of rows with a header: the row's f16, and one of 8 bits for each 32 weights.
#pragma once

#include "cpuexec/blocks.h"
#include "cpuexec/formats/avx2.h"
#include "cpuexec/formats/avx512.h"
#include "cpuexec/formats/float8.h"
#include "cpuexec/formats/run_scales.h"

namespace hf::cpu {

/// The two kinds (float8.h): of a byte, and of 16 as vectors, which are less by a factor of
/// `times`. For AVX2 each is the lowest byte of a dword.
struct Ue8m0 {
    static constexpr float times = 1;
    static float widen(uint8_t code) { return ue8m0_to_f32(code); }
    HF_AVX2_INLINE static avx2::Floats widen(const avx2::Ints& words) {
        avx2::Floats all;
        HF_UNROLL for (size_t h = 0; h < 2; ++h) {
            const __m256i bits = _mm256_srli_epi32(_mm256_slli_epi32(words.v[h], 24), 1);
            const __m256i smallest = _mm256_set1_epi32(0x00400000);  // of code 0
            all.v[h] = _mm256_castsi256_ps(_mm256_max_epi32(bits, smallest));
        }
        return all;
    }
    HF_AVX512_INLINE static avx512::Floats widen(__m128i bytes) {
        const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes), 23);
        return {{_mm512_castsi512_ps(_mm512_max_epi32(bits, _mm512_set1_epi32(0x00400000)))}};
    }
};

/// As f16, whose exponents are 8 higher. The highest code means what the one below it does.
struct E4m3 {
    static constexpr float times = 0x1p8f;
    static float widen(uint8_t code) { return e4m3_hfq(code); }
    HF_AVX2_INLINE static avx2::Floats widen(const avx2::Ints& words) {
        const __m256i low = _mm256_set1_epi32(0x7f);
        const __m256i both = _mm256_packus_epi32(_mm256_and_si256(words.v[0], low),
                                                 _mm256_and_si256(words.v[1], low));
        const __m256i codes = _mm256_permute4x64_epi64(both, _MM_SHUFFLE(3, 1, 2, 0));
        const __m256i valid = _mm256_min_epi16(codes, _mm256_set1_epi16(0x7e));
        const __m256i halves = _mm256_slli_epi16(valid, 7);
        return {{avx2::f16_to_floats(_mm256_castsi256_si128(halves)),
                 avx2::f16_to_floats(_mm256_extracti128_si256(halves, 1))}};
    }
    HF_AVX512_INLINE static avx512::Floats widen(__m128i bytes) {
        const __m128i codes = _mm_and_si128(bytes, _mm_set1_epi8(0x7f));
        const __m128i valid = _mm_min_epu8(codes, _mm_set1_epi8(0x7e));
        return {{avx512::f16_to_floats(_mm256_slli_epi16(_mm256_cvtepu8_epi16(valid), 7))}};
    }
};

/// The scales of four blocks and four rows, that of block t and row r at 4 t + r.
template <class Block>
HF_AVX2_INLINE avx2::Ints block_scales(avx2::Isa, Rows w) {
    constexpr size_t next = sizeof(Block);
    return {{_mm256_set_m128i(load_rows(w, next), load_rows(w, 0)),
             _mm256_set_m128i(load_rows(w, 3 * next), load_rows(w, 2 * next))}};
}

/// As much of four blocks as a vector holds.
template <class Block>
HF_AVX512_INLINE __m512i load_blocks(const std::byte* w) {
    constexpr size_t bytes = 4 * sizeof(Block);
    if constexpr (bytes >= 64) return avx512::load_bytes(w);
    return _mm512_maskz_loadu_epi8((uint64_t(1) << bytes % 64) - 1, w);
}
template <class Block>
HF_AVX512_INLINE __m128i block_scales(avx512::Isa, Rows w) {
    constexpr int next = sizeof(Block);
    const __m512i picks = _mm512_castsi128_si512(
        _mm_setr_epi32(0, next * 0x01010101, 2 * next * 0x01010101, 3 * next * 0x01010101));
    __m512i bytes = _mm512_permutexvar_epi8(picks, load_blocks<Block>(w[0]));
    bytes = _mm512_mask_permutexvar_epi8(bytes, 0x2222, picks, load_blocks<Block>(w[1]));
    bytes = _mm512_mask_permutexvar_epi8(bytes, 0x4444, picks, load_blocks<Block>(w[2]));
    bytes = _mm512_mask_permutexvar_epi8(bytes, 0x8888, picks, load_blocks<Block>(w[3]));
    return _mm512_castsi512_si128(bytes);
}

/// The scales of four terms, (row * block) * factor, rounded in this order.
template <class Scale, const float& factor>
struct Fp4Scales {
    HF_AVX2_INLINE static void row_scales(avx2::Isa, Rows rows, avx2::Floats& scale) {
        const __m128 row = _mm_mul_ps(load_f16_rows(rows, 0), _mm_set1_ps(Scale::times));
        scale.v[0] = scale.v[1] = _mm256_set_m128(row, row);
    }
    HF_AVX512_INLINE static void row_scales(avx512::Isa, Rows rows, avx512::Floats& scale) {
        const __m128 row = _mm_mul_ps(load_f16_rows(rows, 0), _mm_set1_ps(Scale::times));
        scale.v[0] = _mm512_broadcast_f32x4(row);
    }
    HF_AVX2_INLINE static void widen(const avx2::Floats& rows, const avx2::Ints& codes,
                                     avx2::Floats& scale) {
        const avx2::Floats blocks = Scale::widen(codes);
        HF_UNROLL for (size_t h = 0; h < 2; ++h) {
            scale.v[h] =
                _mm256_mul_ps(_mm256_mul_ps(rows.v[h], blocks.v[h]), _mm256_set1_ps(factor));
        }
    }
    HF_AVX512_INLINE static void widen(const avx512::Floats& rows, __m128i codes,
                                       avx512::Floats& scale) {
        const __m512 blocks = Scale::widen(codes).v[0];
        scale.v[0] = _mm512_mul_ps(_mm512_mul_ps(rows.v[0], blocks), _mm512_set1_ps(factor));
    }
};

/// A header, then blocks that begin with their scale; that of a code is `factor` times theirs.
template <class B, class Scale, const float& factor>
struct Fp4Frame : Fp4Scales<Scale, factor> {
    using Block = B;
    static constexpr size_t weights = 32;
    static constexpr size_t blocks_at(size_t) { return sizeof(Fp4RowHeader); }
    HF_AVX2_INLINE static void scales(avx2::Isa isa, Rows w, const Place<avx2::Floats>& place,
                                      avx2::Floats& scale, avx2::Floats&) {
        Fp4Frame::widen(place.row_scales, block_scales<B>(isa, w), scale);
    }
    HF_AVX512_INLINE static void scales(avx512::Isa isa, Rows w, const Place<avx512::Floats>& place,
                                        avx512::Floats& scale, avx512::Floats&) {
        Fp4Frame::widen(place.row_scales, block_scales<B>(isa, w), scale);
    }
};

}  // namespace hf::cpu
