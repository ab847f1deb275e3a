// mq8g256, q8hfq: integers of a byte, as q8_0 in other frames.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/formats.h"

namespace hf::cpu {
namespace {

HF_INLINE void scale_bytes(const int8_t* q, size_t n, float scale, float* __restrict out) {
    for (size_t i = 0; i < n; ++i) out[i] = scale * float(q[i]);
}

struct Mq8 {
    using Block = Mq8Block;
    static constexpr size_t weights = 256;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        scale_bytes(b.q, 256, f16_to_f32(b.scale), out);
    }
};

/// A row: f16 scales of its groups of 32, then its bytes, then padding to a multiple of 128.
struct Q8Hfq {
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t n,
                                  float* out) {
        const std::byte* scales = W.base + row * W.row_bytes;
        const auto* q = reinterpret_cast<const int8_t*>(scales + W.cols / 32 * 2);
        for (size_t i = first; i < first + n; i += 32, out += 32)
            scale_bytes(q + i, 32, f16_to_f32(load<uint16_t>(scales + i / 32 * 2)), out);
    }
};

}  // namespace

constinit const CpuOps mq8 = block_ops<Mq8>({.group = 128, .offsets = false});
constinit const CpuOps q8hfq = block_ops<Q8Hfq>({.group = 32, .offsets = false});

}  // namespace hf::cpu
