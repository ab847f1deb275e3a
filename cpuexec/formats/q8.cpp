// mq8g256, q8hfq: integers of a byte, as q8_0 in other frames.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/formats.h"

namespace hf::cpu {
namespace {

struct Mq8 {
    using Block = Mq8Block;
    static constexpr size_t weights = 256;
    static constexpr Prepare prepare = {
        .group = 128, .term = 128, .ways = 1, .chunk = 64, .offset = 128, .zeros = false};
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        P::signed_bytes(b.q, 256, f16_to_f32(b.scale), out);
    }
};

/// A row: f16 scales of its groups of 32, then its bytes, then padding to a multiple of 128.
struct Q8Hfq {
    static constexpr Prepare prepare = {
        .group = 32, .term = 32, .ways = 1, .chunk = 64, .offset = 128, .zeros = false};
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t n,
                                  float* out) {
        const std::byte* scales = W.base + row * W.row_bytes;
        const auto* q = reinterpret_cast<const int8_t*>(scales + W.cols / 32 * 2);
        for (size_t i = first; i < first + n; i += 32, out += 32)
            P::signed_bytes(q + i, 32, f16_to_f32(load<uint16_t>(scales + i / 32 * 2)), out);
    }
};

}  // namespace

constinit const CpuOps mq8 = block_ops<Mq8>();
constinit const CpuOps q8hfq = block_ops<Q8Hfq>();

}  // namespace hf::cpu
