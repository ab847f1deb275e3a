// hfq*, mq*, q4f16g64: w[i] = scale * q[i] + zero. What differs is the width of a code, the type of
// scale and zero, and how many weights share them.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/bit_stream.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/f16_scales.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/int_ops.h"

namespace hf::cpu {
namespace {

/// Codes as they come out of a bit stream of bytes: 4-bit codes in turns from low and high nibbles,
/// 2-bit codes in turns from four places; codes that share no byte are put in their own order.
template <unsigned width>
constexpr Prepare kAffine = {.group = 128,
                             .term = 128,
                             .ways = width == 4   ? 2
                                     : width == 2 ? 4
                                                  : 1,
                             .chunk = width == 4 || width == 2 ? 1 : 64,
                             .offset = 0,
                             .zeros = true};

/// Blocks with a bit stream of codes, and what the integer dots ask of them: a unit has four terms
/// of 128 weights.
template <unsigned width, class B, size_t block_weights>
struct AffineBlocks {
    using Block = B;
    static constexpr size_t weights = block_weights;
    static constexpr Prepare prepare = kAffine<width>;
    static constexpr int code_max = (1 << width) - 1;
    static constexpr Packing packing = {Packing::stream, 128, width};

    static constexpr size_t block_of(size_t term) { return term * 128 / weights * sizeof(B); }
    static constexpr size_t codes_of(size_t term) {
        return block_of(term) + offsetof(B, codes) + term * 128 % weights / 8 * width;
    }
    HF_AVX2_INLINE static void unpack(avx2::Isa, const std::byte* w, size_t, size_t k, size_t h,
                                      __m256i* codes) {
        if constexpr (width == 2) {
            two_bits(avx2::load_bytes(w + codes_of(2 * k + h)), codes);
        } else if constexpr (width == 4) {
            const __m256i bytes = avx2::load_bytes(w + codes_of(k) + 32 * h);
            codes[0] = avx2::low_nibbles(bytes);
            codes[1] = avx2::high_nibbles(bytes);
        } else {
            codes[0] = stream_32<width>(w + codes_of(k) + 4 * width * h);
            codes[1] = stream_32<width>(w + codes_of(k) + 4 * width * (h + 2));
        }
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa, const std::byte* w, size_t, size_t k, size_t,
                                        __m512i* codes) {
        if constexpr (width == 2) {
            two_bits(avx512::load_two(w + codes_of(2 * k), w + codes_of(2 * k + 1)), codes);
        } else if constexpr (width == 4) {
            const __m512i bytes = avx512::load_bytes(w + codes_of(k));
            codes[0] = avx512::low_nibbles(bytes);
            codes[1] = avx512::high_nibbles(bytes);
        } else {
            codes[0] = stream_64<width>(w + codes_of(k));
            codes[1] = stream_64<width>(w + codes_of(k) + 8 * width);
        }
    }
};

/// One pair of f32 for the group.
template <unsigned width, size_t group>
struct Affine : AffineBlocks<width, AffineBlock<width, group>, group> {
    static constexpr size_t pair_at(size_t term) { return Affine::block_of(term); }
    template <class P>
    HF_INLINE static void decode(const AffineBlock<width, group>& b, float* out) {
        P::template affine<width>(b.codes, group, b.scale, b.zero, out);
    }
    HF_AVX2_INLINE static void scales(avx2::Isa, Rows w, size_t, avx2::Floats& scale,
                                      avx2::Floats& zero) {
        avx2::load_f32_pairs<Affine>(w, scale, zero);
    }
    HF_AVX512_INLINE static void scales(avx512::Isa, Rows w, size_t, avx512::Floats& scale,
                                        avx512::Floats& zero) {
        avx512::load_f32_pairs<Affine>(w, scale, zero);
    }
};

/// One pair of f16 for each half.
template <unsigned width>
struct AffineV2 : AffineBlocks<width, AffineV2Block<width>, 256>, F16Pairs<AffineV2<width>> {
    static constexpr size_t pair_at(size_t term) {
        return AffineV2::block_of(term) + term % 2 * sizeof(F16Pair);
    }
    template <class P>
    HF_INLINE static void decode(const AffineV2Block<width>& b, float* out) {
        for (size_t h = 0; h < 2; ++h)
            P::template affine<width>(b.codes + h * 16 * width, 128, f16_to_f32(b.half[h].scale),
                                      f16_to_f32(b.half[h].zero), out + h * 128);
    }
};

/// One pair of f16 for all weights of a 4-bit block.
template <class B, size_t group>
struct AffineF16 : AffineBlocks<4, B, group>, F16Pairs<AffineF16<B, group>> {
    static constexpr size_t pair_at(size_t term) { return AffineF16::block_of(term); }
    template <class P>
    HF_INLINE static void decode(const B& b, float* out) {
        P::template affine<4>(b.codes, group, f16_to_f32(b.all.scale), f16_to_f32(b.all.zero), out);
    }
};

struct Q4F16 : F16Pairs<Q4F16> {
    using Block = Q4F16Block;
    static constexpr size_t weights = 64;
    static constexpr Prepare prepare = {
        .group = 128, .term = 64, .ways = 2, .chunk = 32, .offset = 0, .zeros = true};
    static constexpr int code_max = 15;
    static constexpr Packing packing = {Packing::halves, 64};
    static constexpr size_t pair_at(size_t term) { return term * sizeof(Block); }
    static constexpr size_t codes_of(size_t term) {
        return term * sizeof(Block) + offsetof(Block, nibbles);
    }
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float scale = f16_to_f32(b.all.scale), zero = f16_to_f32(b.all.zero);
        for (int h = 0; h < 2; ++h)
            P::affine_bytes({b.nibbles, 4 * h, 15}, 32, 0, scale, zero, out + 32 * h);
    }
    HF_AVX2_INLINE static void unpack(avx2::Isa, const std::byte* w, size_t, size_t k, size_t h,
                                      __m256i* codes) {
        const std::byte* block = w + (2 * k + h) * sizeof(Block);
        const __m256i bytes = avx2::load_bytes(block + offsetof(Block, nibbles));
        codes[0] = avx2::low_nibbles(bytes);
        codes[1] = avx2::high_nibbles(bytes);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa, const std::byte* w, size_t, size_t k, size_t,
                                        __m512i* codes) {
        const std::byte* nibbles = w + 2 * k * sizeof(Block) + offsetof(Block, nibbles);
        const __m512i bytes = avx512::load_two(nibbles, nibbles + sizeof(Block));
        codes[0] = avx512::low_nibbles(bytes);
        codes[1] = avx512::high_nibbles(bytes);
    }
};

}  // namespace

constinit const CpuOps affine2_g128 = with_integers<Affine<2, 128>>(block_ops<Affine<2, 128>>());
constinit const CpuOps affine2_g256 = with_integers<Affine<2, 256>>(block_ops<Affine<2, 256>>());
constinit const CpuOps affine3_g128 = with_integers<Affine<3, 128>>(block_ops<Affine<3, 128>>());
constinit const CpuOps affine3_g256 = with_integers<Affine<3, 256>>(block_ops<Affine<3, 256>>());
constinit const CpuOps affine4_g128 = with_integers<Affine<4, 128>>(block_ops<Affine<4, 128>>());
constinit const CpuOps affine4_g256 = with_integers<Affine<4, 256>>(block_ops<Affine<4, 256>>());
constinit const CpuOps affine5_g256 = with_integers<Affine<5, 256>>(block_ops<Affine<5, 256>>());
constinit const CpuOps affine6_g256 = with_integers<Affine<6, 256>>(block_ops<Affine<6, 256>>());
constinit const CpuOps affine2_v2 = with_integers<AffineV2<2>>(block_ops<AffineV2<2>>());
constinit const CpuOps affine3_v2 = with_integers<AffineV2<3>>(block_ops<AffineV2<3>>());
constinit const CpuOps affine4_v2 = with_integers<AffineV2<4>>(block_ops<AffineV2<4>>());
constinit const CpuOps affine5_v2 = with_integers<AffineV2<5>>(block_ops<AffineV2<5>>());
constinit const CpuOps affine6_v2 = with_integers<AffineV2<6>>(block_ops<AffineV2<6>>());
constinit const CpuOps mq4c =
    with_integers<AffineF16<Mq4cBlock, 256>>(block_ops<AffineF16<Mq4cBlock, 256>>());
constinit const CpuOps mq4_g128_v2 =
    with_integers<AffineF16<Mq4g128V2Block, 128>>(block_ops<AffineF16<Mq4g128V2Block, 128>>());
constinit const CpuOps q4_f16_g64 = with_integers<Q4F16>(block_ops<Q4F16>());

}  // namespace hf::cpu
