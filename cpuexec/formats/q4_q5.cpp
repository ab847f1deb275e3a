// q4_0, q4_1, q5_0, q5_1: 32 weights of 4 or 5 bits, nibbles in halves.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/formats.h"

namespace hf::cpu {
namespace {

struct Q4_0 {
    using Block = Q4_0Block;
    static constexpr size_t weights = 32;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float d = f16_to_f32(b.d);
        for (int h = 0; h < 2; ++h)
            P::affine_bytes({b.nibbles, 4 * h, 15}, 16, 8, d, kNone, out + 16 * h);
    }
};

struct Q4_1 {
    using Block = Q4_1Block;
    static constexpr size_t weights = 32;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float d = f16_to_f32(b.d), m = f16_to_f32(b.m);
        for (int h = 0; h < 2; ++h)
            P::affine_bytes({b.nibbles, 4 * h, 15}, 16, 0, d, m, out + 16 * h);
    }
};

/// Bit 4 of code i.
HF_INLINE int fifth_bit(uint32_t high, size_t i) {
    return int(high >> i & 1) * 16;
}

struct Q5_0 {
    using Block = Q5_0Block;
    static constexpr size_t weights = 32;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* __restrict out) {
        const float d = f16_to_f32(b.d);
        const uint32_t high = b.high;
        for (size_t j = 0; j < 16; ++j) {
            out[j] = d * float((b.nibbles[j] & 15) + fifth_bit(high, j) - 16);
            out[j + 16] = d * float((b.nibbles[j] >> 4) + fifth_bit(high, j + 16) - 16);
        }
    }
};

struct Q5_1 {
    using Block = Q5_1Block;
    static constexpr size_t weights = 32;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* __restrict out) {
        const float d = f16_to_f32(b.d), m = f16_to_f32(b.m);
        const uint32_t high = b.high;
        for (size_t j = 0; j < 16; ++j) {
            out[j] = d * float((b.nibbles[j] & 15) + fifth_bit(high, j)) + m;
            out[j + 16] = d * float((b.nibbles[j] >> 4) + fifth_bit(high, j + 16)) + m;
        }
    }
};

}  // namespace

constinit const CpuOps q4_0 = block_ops<Q4_0>({.group = 32, .offsets = false});
constinit const CpuOps q4_1 = block_ops<Q4_1>({.group = 32, .offsets = true});
constinit const CpuOps q5_0 = block_ops<Q5_0>({.group = 32, .offsets = false});
constinit const CpuOps q5_1 = block_ops<Q5_1>({.group = 32, .offsets = true});

}  // namespace hf::cpu
