// iq4_nl, iq4_xs: 4-bit codes of a fixed table that is denser around zero, nibbles in halves.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/codebooks.h"
#include "cpuexec/formats/formats.h"

namespace hf::cpu {
namespace {

/// Signed bytes of the table; where bytes must not be signed, 128 more.
constexpr Prepare kIq4 = {
    .group = 32, .term = 32, .ways = 2, .chunk = 16, .offset = 128, .zeros = false};

struct Iq4Nl {
    using Block = Q4_0Block;
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = kIq4;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        P::lookup_halves(b.nibbles, 32, kIq4Levels, f16_to_f32(b.d), out);
    }
};

struct Iq4Xs {
    using Block = Iq4XsBlock;
    static constexpr size_t weights = 256;
    static constexpr Prepare prepare = kIq4;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float d = f16_to_f32(b.d);
        for (size_t r = 0; r < 8; ++r) {
            const int low = b.scales_low[r / 2] >> r % 2 * 4 & 15;
            const int scale = (low | (b.scales_high >> 2 * r & 3) << 4) - 32;
            P::lookup_halves(b.nibbles[r], 32, kIq4Levels, d * float(scale), out + 32 * r);
        }
    }
};

}  // namespace

constinit const CpuOps iq4_nl = block_ops<Iq4Nl>();
constinit const CpuOps iq4_xs = block_ops<Iq4Xs>();

}  // namespace hf::cpu
