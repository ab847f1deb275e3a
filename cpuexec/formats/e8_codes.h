// Codewords of e8.h as the codes of dot_shape.h: those of even weights, then those of odd ones.
//
// A codeword lies in a dword, two values of e in each byte; `half` is bit 31, and e[7] lacks its
// lowest bit, the parity of the lowest bits of the other seven. To add these up, they are
// multiplied such that all of them meet in one bit: below it, no sum is large enough to carry into
// it.
#pragma once

#include <bit>

#include "cpuexec/formats/avx2.h"
#include "cpuexec/formats/avx512.h"
#include "cpuexec/formats/e8.h"

namespace hf::cpu {

/// Where bits of such a dword are, and how far they must go for 2 e + half: e to bit 1 of its byte,
/// what there is of e[7] to bit 26 and its parity to bit 25.
///          a byte      even e  odd e   rest of e[7]
///     4    oooo eeee   0       4       bits 28 .. 30
///     3    ooo eee --  2       5       bits 29, 30
///     2    oo ee ----  4       6       bit 30
template <unsigned n>
struct E8Words {
    static constexpr int even = n == 4 ? 0 : n == 3 ? 2 : 4, odd = even + int(n);
    static constexpr uint32_t e = (2u << n) - 2;     // 2 e, in a byte
    static constexpr uint32_t rest = (2u << n) - 4;  // 4 (e[7] / 2)
    static constexpr uint32_t lowest = uint32_t(0x01010101ull << even) | 0x010101u << odd;
    static constexpr uint32_t factors = n == 4   ? 0x11111111
                                        : n == 3 ? 0x09080909
                                                 : 0x05040505;  // of the words of `lowest`
    static constexpr int sum = n == 4 ? 12 : n == 3 ? 13 : 14;  // the bit where they meet
};

template <unsigned n>
constexpr bool sums_are_parities() {
    using W = E8Words<n>;
    for (uint32_t some = W::lowest;; some = (some - 1) & W::lowest) {  // any of these bits
        const uint32_t sums =
            (some & 0xffff) * (W::factors & 0xffff) + (some >> 16) * (W::factors >> 16);
        if ((sums >> W::sum & 1) != uint32_t(std::popcount(some) % 2)) return false;
        if (some == 0) return true;
    }
}
static_assert(sums_are_parities<4>() && sums_are_parities<3>() && sums_are_parities<2>());

// AVX2. ------------------------------------------------------------------------------------------

HF_AVX2_INLINE __m256i keep(__m256i words, uint32_t bits) {
    return _mm256_and_si256(words, _mm256_set1_epi32(int(bits)));
}

template <unsigned n>
HF_AVX2_INLINE void e8_codes(__m256i words, __m256i* codes) {
    using W = E8Words<n>;
    const __m256i less = _mm256_srai_epi32(words, 31);  // -1 for half
    const __m256i even =
        W::even == 0 ? _mm256_add_epi32(words, words) : _mm256_srli_epi32(words, W::even - 1);
    codes[0] = _mm256_sub_epi8(keep(even, W::e * 0x01010101), less);
    // What there is of e[7] arrives a bit too low, and is doubled
    const __m256i odd =
        keep(_mm256_srli_epi32(words, W::odd - 1), W::rest / 2 << 24 | W::e * 0x010101);
    const __m256i twice = _mm256_add_epi8(odd, keep(odd, 0xff000000));
    const __m256i sums = _mm256_madd_epi16(keep(words, W::lowest), _mm256_set1_epi32(W::factors));
    const __m256i parity = keep(_mm256_slli_epi32(sums, 25 - W::sum), 1 << 25);
    codes[1] = _mm256_sub_epi8(_mm256_or_si256(twice, parity), less);
}

/// The codewords of two blocks. Blocks begin with a byte that is none of theirs, and nothing is
/// read behind the second one, nor before the first one.
template <unsigned n>
HF_AVX2_INLINE __m256i e8_words(avx2::Isa, const std::byte* blocks) {
    constexpr size_t next = 4 * n + 1;
    if constexpr (n == 4) {
        return avx2::load_two(blocks + 1, blocks + 1 + next);
    } else if constexpr (n == 3) {  // 16 bits from each end of a codeword of 24
        const __m256i bytes = avx2::load_two(blocks, blocks + 2 * next - 16);
        const __m256i pairs = _mm256_shuffle_epi8(
            bytes, _mm256_setr_epi8(1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 4, 5, 5, 6,
                                    7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15));
        const __m256i ends = _mm256_mullo_epi16(pairs, _mm256_set1_epi32(0x00010010));
        return _mm256_or_si256(keep(ends, 0xfc00fc00),
                               keep(_mm256_srli_epi16(ends, 2), 0x00fc00fc));
    } else {
        const __m128i first = _mm_cvtsi64_si128(load<int64_t>(blocks + 1));
        const __m128i second = _mm_cvtsi64_si128(load<int64_t>(blocks + 1 + next));
        const __m256i bytes = _mm256_set_m128i(second, first);
        return _mm256_unpacklo_epi8(_mm256_slli_epi16(bytes, 4), bytes);
    }
}

// AVX-512. ---------------------------------------------------------------------------------------

/// all, and those bits of words.
HF_AVX512_INLINE __m512i put(__m512i all, __m512i words, __m512i bits) {
    return _mm512_ternarylogic_epi32(all, words, bits, 0xf8);
}

/// Here a codeword lies in the upper 8 n bits of a dword, and codes are taken right out of it:
/// where the 8 bits begin in two codewords that have a code's e at bit 1, or what there is of e[7]
/// at 2.
template <unsigned n>
struct E8Cuts {
    alignas(64) int8_t even[64] = {}, odd[64] = {}, bytes[64] = {};
    constexpr E8Cuts() {
        for (int i = 0; i < 64; ++i) {
            const int word = i / 4, byte = i % 4;
            const int first = word % 2 * 32 + 32 - 8 * int(n);
            even[i] = int8_t((first + 2 * byte * int(n) - 1) & 63);
            odd[i] = int8_t((first + (2 * byte + 1) * int(n) - (byte == 3 ? 2 : 1)) & 63);
            // of four blocks
            const int begin = word / 4 * int(4 * n + 1) + 1 + word % 4 * int(n);
            bytes[i] = int8_t(begin + (byte + int(n)) % 4);
        }
    }
};
template <unsigned n>
inline constexpr E8Cuts<n> kE8Cuts;

template <unsigned n>
HF_AVX512_INLINE void e8_codes(__m512i words, __m512i* codes) {
    using W = E8Words<n>;
    const __m512i half = _mm512_and_si512(_mm512_srai_epi32(words, 31), _mm512_set1_epi8(1));
    const __m512i even = _mm512_multishift_epi64_epi8(_mm512_load_si512(kE8Cuts<n>.even), words);
    const __m512i odd = _mm512_multishift_epi64_epi8(_mm512_load_si512(kE8Cuts<n>.odd), words);
    codes[0] = put(half, even, _mm512_set1_epi8(W::e));
    codes[1] = put(half, odd, _mm512_set1_epi32(W::rest << 24 | W::e * 0x010101));
    // Bit 1 of four bytes, added up at bit 9
    const __m512i lowest = _mm512_ternarylogic_epi32(codes[0], codes[1], _mm512_set1_epi8(2), 0x28);
    const __m512i sums = _mm512_madd_epi16(lowest, _mm512_set1_epi16(0x0101));
    codes[1] = put(codes[1], _mm512_slli_epi32(sums, 16), _mm512_set1_epi32(1 << 25));
}

/// The codewords of four blocks.
template <unsigned n>
HF_AVX512_INLINE __m512i e8_words(avx512::Isa, const std::byte* blocks) {
    if constexpr (n == 4) return avx512::load_four(blocks + 1, 4 * n + 1);
    constexpr uint64_t bytes = (uint64_t(1) << (4 * (4 * n + 1)) % 64) - 1;
    return _mm512_permutexvar_epi8(_mm512_load_si512(kE8Cuts<n>.bytes),
                                   _mm512_maskz_loadu_epi8(bytes, blocks));
}

}  // namespace hf::cpu
