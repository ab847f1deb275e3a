// q4_0, q4_1, q5_0, q5_1: 32 weights of 4 or 5 bits, nibbles in halves.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/int_ops.h"

namespace hf::cpu {
namespace {

/// Nibbles in halves: low ones of four blocks, then high ones.
constexpr Prepare halves(int16_t offset, bool zeros) {
    return {.group = 32, .term = 32, .ways = 2, .chunk = 16, .offset = offset, .zeros = zeros};
}

struct Q4_0 {
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
    HF_AVX2_INLINE static void unpack(avx2::Isa, const std::byte* w, size_t, size_t, size_t h,
                                      __m256i* codes) {
        const std::byte* nibbles = w + 2 * h * sizeof(Block) + offsetof(Block, nibbles);
        const __m256i bytes = avx2::load_two(nibbles, nibbles + sizeof(Block));
        codes[0] = avx2::low_nibbles(bytes);
        codes[1] = avx2::high_nibbles(bytes);
    }
    HF_AVX2_INLINE static void scales(avx2::Isa, Rows w, size_t, avx2::Floats& scale,
                                      avx2::Floats&) {
        scale = avx2::load_f16<sizeof(Block)>(w, 0);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa, const std::byte* w, size_t, size_t, size_t,
                                        __m512i* codes) {
        const __m512i bytes = avx512::load_four(w + offsetof(Block, nibbles), sizeof(Block));
        codes[0] = avx512::low_nibbles(bytes);
        codes[1] = avx512::high_nibbles(bytes);
    }
    HF_AVX512_INLINE static void scales(avx512::Isa, Rows w, size_t, avx512::Floats& scale,
                                        avx512::Floats&) {
        scale = avx512::load_f16_near<sizeof(Block)>(w);
    }
};

struct Q4_1 {
    using Block = Q4_1Block;
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = halves(/*offset=*/0, /*zeros=*/true);
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float d = f16_to_f32(b.d), m = f16_to_f32(b.m);
        for (int h = 0; h < 2; ++h)
            P::affine_bytes({b.nibbles, 4 * h, 15}, 16, 0, d, m, out + 16 * h);
    }
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

struct Q5_0 {
    using Block = Q5_0Block;
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = halves(/*offset=*/16, /*zeros=*/false);
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        uint8_t codes[32];
        five_bits(b, codes);
        P::affine_bytes({codes, 0, 31}, 32, 16, f16_to_f32(b.d), kNone, out);
    }
};

struct Q5_1 {
    using Block = Q5_1Block;
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = halves(/*offset=*/0, /*zeros=*/true);
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        uint8_t codes[32];
        five_bits(b, codes);
        P::affine_bytes({codes, 0, 31}, 32, 0, f16_to_f32(b.d), f16_to_f32(b.m), out);
    }
};

}  // namespace

constinit const CpuOps q4_0 = with_integers<Q4_0>(block_ops<Q4_0>());
constinit const CpuOps q4_1 = block_ops<Q4_1>();
constinit const CpuOps q5_0 = block_ops<Q5_0>();
constinit const CpuOps q5_1 = block_ops<Q5_1>();

}  // namespace hf::cpu
