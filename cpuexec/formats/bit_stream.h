// Codes of a bit stream as bytes: of 1 and 2 bits out of bytes, of 3, 5 and 6 bits across them; and
// bits that are kept apart from the codes that they belong to.
#pragma once

#include "cpuexec/formats/avx2.h"
#include "cpuexec/formats/avx512.h"

namespace hf::cpu {

/// codes + value where the bit of `bits` is set; the codes do not have that bit.
HF_AVX2_INLINE __m256i add_bits(__m256i codes, __m256i bits, __m256i bit, int value) {
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bits, bit), bit);
    return _mm256_or_si256(codes, _mm256_and_si256(set, _mm256_set1_epi8(char(value))));
}
HF_AVX512_INLINE __m512i add_bits(__m512i codes, __m512i bits, __m512i bit, int value) {
    return _mm512_mask_add_epi8(codes, _mm512_test_epi8_mask(bits, bit), codes,
                                _mm512_set1_epi8(char(value)));
}

/// Bit j of byte j of eight.
constexpr int64_t kBitsOfBytes = int64_t(0x8040201008040201);

/// Bits as bytes of 0 or 2.
HF_AVX2_INLINE __m256i one_bit_32(const std::byte* from) {
    const __m256i picks =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(load<int32_t>(from)), picks);
    return add_bits(_mm256_setzero_si256(), bytes, _mm256_set1_epi64x(kBitsOfBytes), 2);
}
HF_AVX512_INLINE __m512i one_bit_64(const std::byte* from) {
    return _mm512_maskz_mov_epi8(load<uint64_t>(from), _mm512_set1_epi8(2));
}

/// Codes of 2 bits from each of their four places.
HF_AVX2_INLINE void two_bits(__m256i bytes, __m256i* codes) {
    const __m256i mask = _mm256_set1_epi8(3);
    codes[0] = _mm256_and_si256(bytes, mask);
    codes[1] = _mm256_and_si256(_mm256_srli_epi16(bytes, 2), mask);
    codes[2] = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask);
    codes[3] = _mm256_and_si256(_mm256_srli_epi16(bytes, 6), mask);
}
HF_AVX512_INLINE void two_bits(__m512i bytes, __m512i* codes) {
    const __m512i mask = _mm512_set1_epi8(3);
    codes[0] = _mm512_and_si512(bytes, mask);
    codes[1] = _mm512_and_si512(_mm512_srli_epi16(bytes, 2), mask);
    codes[2] = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), mask);
    codes[3] = _mm512_and_si512(_mm512_srli_epi16(bytes, 6), mask);
}

/// How stream_32() finds 16 codes in each 128-bit lane. Word i of a lane takes the two bytes that
/// hold codes 2i and 2i + 1, and a multiplication moves the pair to the word's upper end.
template <unsigned width>
struct PairPicks {
    /// Where the 16 bytes of a lane begin, seen from the first code; none reach behind the last.
    static constexpr int begin(int lane) {
        return lane == 0 && width > 4 ? 0 : 4 * int(width) - 16;
    }
    alignas(32) int8_t bytes[32] = {};
    alignas(32) uint16_t factors[16] = {};
    constexpr PairPicks() {
        for (int i = 0; i < 16; ++i) {
            const int bit = 2 * int(width) * i, at = bit / 8 - begin(i / 8);
            bytes[2 * i] = int8_t(at);
            bytes[2 * i + 1] = at + 1 < 16 ? int8_t(at + 1) : int8_t(-1);  // -1: zero
            factors[i] = uint16_t(1 << (16 - 2 * int(width) - bit % 8));
        }
    }
};
template <unsigned width>
inline constexpr PairPicks<width> kPairPicks;

/// 32 codes of 3, 5 or 6 bits. Reads their 4 * width bytes, and up to 4 bytes before them.
template <unsigned width>
HF_AVX2_INLINE __m256i stream_32(const std::byte* from) {
    using Picks = PairPicks<width>;
    const auto* bytes = reinterpret_cast<const __m256i*>(kPairPicks<width>.bytes);
    const auto* factors = reinterpret_cast<const __m256i*>(kPairPicks<width>.factors);
    const __m256i words = _mm256_shuffle_epi8(
        avx2::load_two(from + Picks::begin(0), from + Picks::begin(1)), _mm256_load_si256(bytes));
    const __m256i pairs = _mm256_mullo_epi16(words, _mm256_load_si256(factors));
    constexpr int mask = (1 << width) - 1;
    const __m256i even =
        _mm256_and_si256(_mm256_srli_epi16(pairs, 16 - 2 * int(width)), _mm256_set1_epi16(mask));
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi16(pairs, 8 - int(width)),
                                         _mm256_set1_epi16(int16_t(mask << 8)));
    return _mm256_or_si256(even, odd);
}

/// How stream_64() finds 8 codes in each of 8 qwords.
template <unsigned width>
struct OctetPicks {
    alignas(64) uint8_t bytes[64] = {};
    constexpr OctetPicks() {
        for (unsigned i = 0; i < 64; ++i)
            bytes[i] = uint8_t(i % 8 < width ? i / 8 * width + i % 8 : 63);  // 63: zero
    }
};
template <unsigned width>
inline constexpr OctetPicks<width> kOctetPicks;

/// 64 codes of 3, 5 or 6 bits. Reads their 8 * width bytes.
template <unsigned width>
HF_AVX512_INLINE __m512i stream_64(const std::byte* from) {
    const __m512i bytes = _mm512_maskz_loadu_epi8((uint64_t(1) << 8 * width) - 1, from);
    const __m512i octets =
        _mm512_permutexvar_epi8(_mm512_load_si512(kOctetPicks<width>.bytes), bytes);
    constexpr uint64_t kBits = 0x0706050403020100 * width;  // where code i of eight begins
    return _mm512_and_si512(_mm512_multishift_epi64_epi8(_mm512_set1_epi64(int64_t(kBits)), octets),
                            _mm512_set1_epi8((1 << width) - 1));
}

}  // namespace hf::cpu
