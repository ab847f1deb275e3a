// tq2g128, bq1g128: weights of three values, w = (q - 1) * scale, or of two, +scale and -scale. The
// code 3 of the first is never written and means 2 * scale.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/formats.h"

namespace hf::cpu {
namespace {

constexpr Levels kTwo = {-1, 1}, kThree = {-1, 0, 1, 2};

template <unsigned width>
struct Ternary {
    using Block = TernaryBlock<width>;
    static constexpr size_t weights = 128;
    static constexpr Prepare prepare = {.group = 128,
                                        .term = 128,
                                        .ways = width == 2 ? 4 : 1,
                                        .chunk = width == 2 ? 1 : 64,
                                        .offset = 1,
                                        .zeros = false};
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float scale = f16_to_f32(b.scale);
        P::template lookup<width>(b.codes, 128, width == 1 ? kTwo : kThree, scale, out);
    }
};

}  // namespace

constinit const CpuOps ternary = block_ops<Ternary<2>>();
constinit const CpuOps binary = block_ops<Ternary<1>>();

}  // namespace hf::cpu
