// hfq*, mq*, q4f16g64: w[i] = scale * q[i] + zero. What differs is the width of a code, the type of
// scale and zero, and how many weights share them.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/formats.h"

namespace hf::cpu {
namespace {

/// One pair of f32 for the group.
template <unsigned width, size_t group>
struct Affine {
    using Block = AffineBlock<width, group>;
    static constexpr size_t weights = group;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        P::template affine<width>(b.codes, group, b.scale, b.zero, out);
    }
};

/// One pair of f16 for each half.
template <unsigned width>
struct AffineV2 {
    using Block = AffineV2Block<width>;
    static constexpr size_t weights = 256;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        for (size_t h = 0; h < 2; ++h)
            P::template affine<width>(b.codes + h * 16 * width, 128, f16_to_f32(b.half[h].scale),
                                      f16_to_f32(b.half[h].zero), out + h * 128);
    }
};

/// One pair of f16 for all weights of a 4-bit block.
template <class B, size_t group>
struct AffineF16 {
    using Block = B;
    static constexpr size_t weights = group;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        P::template affine<4>(b.codes, group, f16_to_f32(b.all.scale), f16_to_f32(b.all.zero), out);
    }
};

struct Q4F16 {
    using Block = Q4F16Block;
    static constexpr size_t weights = 64;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float scale = f16_to_f32(b.all.scale), zero = f16_to_f32(b.all.zero);
        for (int h = 0; h < 2; ++h)
            P::affine_bytes({b.nibbles, 4 * h, 15}, 32, 0, scale, zero, out + 32 * h);
    }
};

constexpr Prepare kBy128 = {.group = 128, .offsets = true};
constexpr Prepare kBy32 = {.group = 32, .offsets = true};

}  // namespace

constinit const CpuOps affine2_g128 = block_ops<Affine<2, 128>>(kBy128);
constinit const CpuOps affine2_g256 = block_ops<Affine<2, 256>>(kBy128);
constinit const CpuOps affine3_g128 = block_ops<Affine<3, 128>>(kBy128);
constinit const CpuOps affine3_g256 = block_ops<Affine<3, 256>>(kBy128);
constinit const CpuOps affine4_g128 = block_ops<Affine<4, 128>>(kBy128);
constinit const CpuOps affine4_g256 = block_ops<Affine<4, 256>>(kBy128);
constinit const CpuOps affine5_g256 = block_ops<Affine<5, 256>>(kBy128);
constinit const CpuOps affine6_g256 = block_ops<Affine<6, 256>>(kBy128);
constinit const CpuOps affine2_v2 = block_ops<AffineV2<2>>(kBy128);
constinit const CpuOps affine3_v2 = block_ops<AffineV2<3>>(kBy128);
constinit const CpuOps affine4_v2 = block_ops<AffineV2<4>>(kBy128);
constinit const CpuOps affine5_v2 = block_ops<AffineV2<5>>(kBy128);
constinit const CpuOps affine6_v2 = block_ops<AffineV2<6>>(kBy128);
constinit const CpuOps mq4c = block_ops<AffineF16<Mq4cBlock, 256>>(kBy128);
constinit const CpuOps mq4_g128_v2 = block_ops<AffineF16<Mq4g128V2Block, 128>>(kBy128);
constinit const CpuOps q4_f16_g64 = block_ops<Q4F16>(kBy32);

}  // namespace hf::cpu
