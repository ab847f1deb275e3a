// q4_0, q4_1, q5_0, q5_1: 32 weights of 4 or 5 bits, nibbles in halves.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/bit_stream.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/f16_scales.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/half_nibbles.h"
#include "cpuexec/formats/int_ops.h"

namespace hf::cpu {
namespace {

/// Nibbles in halves: low ones of four blocks, then high ones.
constexpr Prepare halves(int16_t offset, bool zeros) {
    return {.group = 32, .term = 32, .ways = 2, .chunk = 16, .offset = offset, .zeros = zeros};
}

/// Which byte of the first 16 of a block has bit 4 of a code of the low nibbles; those of the high
/// nibbles are 2 bytes further. Bit j of it belongs to code j.
template <class Block>
HF_AVX2_INLINE __m128i high_picks() {
    const char at = char(offsetof(Block, high));
    return _mm_set_epi64x((at + 1) * 0x0101010101010101, at * 0x0101010101010101);
}

HF_AVX2_INLINE __m256i add_high_bits(__m256i codes, __m256i blocks, __m128i picks) {
    const __m256i high = _mm256_shuffle_epi8(blocks, _mm256_broadcastsi128_si256(picks));
    return add_bits(codes, high, _mm256_set1_epi64x(kBitsOfBytes), 16);
}
HF_AVX512_INLINE __m512i add_high_bits(__m512i codes, __m512i blocks, __m128i picks) {
    const __m512i high = _mm512_shuffle_epi8(blocks, _mm512_broadcast_i32x4(picks));
    return add_bits(codes, high, _mm512_set1_epi64(kBitsOfBytes), 16);
}

/// The same with bit 4.
template <class Block>
HF_AVX2_INLINE void unpack_five_bits(avx2::Isa isa, const std::byte* w, size_t h, __m256i* codes) {
    const std::byte* block = w + 2 * h * sizeof(Block);
    const __m256i blocks = avx2::load_two(block, block + sizeof(Block));
    const __m128i picks = high_picks<Block>();
    unpack_halves<Block>(isa, w, h, codes);
    codes[0] = add_high_bits(codes[0], blocks, picks);
    codes[1] = add_high_bits(codes[1], blocks, _mm_add_epi8(picks, _mm_set1_epi8(2)));
}
template <class Block>
HF_AVX512_INLINE void unpack_five_bits(avx512::Isa isa, const std::byte* w, size_t h,
                                       __m512i* codes) {
    const __m512i blocks = avx512::load_four(w, sizeof(Block));
    const __m128i picks = high_picks<Block>();
    unpack_halves<Block>(isa, w, h, codes);
    codes[0] = add_high_bits(codes[0], blocks, picks);
    codes[1] = add_high_bits(codes[1], blocks, _mm_add_epi8(picks, _mm_set1_epi8(2)));
}

template <class Block>
struct FiveBits {
    HF_AVX2_INLINE static void unpack(avx2::Isa isa, const std::byte* w, size_t, size_t, size_t h,
                                      __m256i* codes) {
        unpack_five_bits<Block>(isa, w, h, codes);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa isa, const std::byte* w, size_t, size_t,
                                        size_t h, __m512i* codes) {
        unpack_five_bits<Block>(isa, w, h, codes);
    }
};

struct Q4_0 : HalfNibbles<Q4_0Block>, F16ScalesNear<Q4_0Block> {
    using Block = Q4_0Block;
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = halves(/*offset=*/8, /*zeros=*/false);
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float d = f16_to_f32(b.d);
        for (int h = 0; h < 2; ++h)
            P::affine_bytes({b.nibbles, 4 * h, 15}, 16, 8, d, kNone, out + 16 * h);
    }
    static constexpr int code_max = 15;
    static constexpr Packing packing = {Packing::halves, 32};
    static constexpr size_t codes_of(size_t term) { return nibbles_of<Block>(term); }
};

/// Pairs at the beginning of blocks.
template <class F>
struct PairsOfBlocks : F16Pairs<F> {
    static constexpr size_t pair_at(size_t term) { return term * sizeof(typename F::Block); }
};

struct Q4_1 : HalfNibbles<Q4_1Block>, PairsOfBlocks<Q4_1> {
    using Block = Q4_1Block;
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = halves(/*offset=*/0, /*zeros=*/true);
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float d = f16_to_f32(b.d), m = f16_to_f32(b.m);
        for (int h = 0; h < 2; ++h)
            P::affine_bytes({b.nibbles, 4 * h, 15}, 16, 0, d, m, out + 16 * h);
    }
    static constexpr int code_max = 15;
    static constexpr Packing packing = {Packing::halves, 32};
    static constexpr size_t codes_of(size_t term) { return nibbles_of<Block>(term); }
};

/// Codes of 5 bits: nibbles in halves, and bit 4 of code i in bit i of `high`.
template <class Block>
HF_INLINE void five_bits(const Block& b, uint8_t* codes) {
    const uint32_t high = b.high;
    for (size_t j = 0; j < 16; ++j) {
        codes[j] = uint8_t((b.nibbles[j] & 15) | (high >> j & 1) << 4);
        codes[j + 16] = uint8_t(b.nibbles[j] >> 4 | (high >> (j + 16) & 1) << 4);
    }
}

struct Q5_0 : FiveBits<Q5_0Block>, F16Scales<Q5_0Block> {
    using Block = Q5_0Block;
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = halves(/*offset=*/16, /*zeros=*/false);
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        uint8_t codes[32];
        five_bits(b, codes);
        P::affine_bytes({codes, 0, 31}, 32, 16, f16_to_f32(b.d), kNone, out);
    }
    static constexpr int code_max = 31;
};

struct Q5_1 : FiveBits<Q5_1Block>, PairsOfBlocks<Q5_1> {
    using Block = Q5_1Block;
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = halves(/*offset=*/0, /*zeros=*/true);
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        uint8_t codes[32];
        five_bits(b, codes);
        P::affine_bytes({codes, 0, 31}, 32, 0, f16_to_f32(b.d), f16_to_f32(b.m), out);
    }
    static constexpr int code_max = 31;
};

}  // namespace

constinit const CpuOps q4_0 = with_integers<Q4_0>(block_ops<Q4_0>());
constinit const CpuOps q4_1 = with_integers<Q4_1>(block_ops<Q4_1>());
constinit const CpuOps q5_0 = with_integers<Q5_0>(block_ops<Q5_0>());
constinit const CpuOps q5_1 = with_integers<Q5_1>(block_ops<Q5_1>());

}  // namespace hf::cpu
