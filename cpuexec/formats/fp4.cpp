// *fp4*: 4-bit floats (or 16 levels in their place) with 8-bit scales for runs of 16 or 32.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/codebooks.h"
#include "cpuexec/formats/float8.h"
#include "cpuexec/formats/formats.h"

namespace hf::cpu {
namespace {

using Scale = float (*)(uint8_t);

/// Twice the levels are integers, -12 .. 12. Codes come in the order of their nibbles: in turns, in
/// halves, or one after the other.
constexpr Prepare doubled(uint16_t term, uint8_t ways, uint8_t chunk) {
    return {.group = 32, .term = term, .ways = ways, .chunk = chunk, .offset = 12, .zeros = false};
}

/// Rows with a header: w[i] = (row scale * block scale) * L[q[i]].
template <Scale scale_of, class P>
HF_INLINE void decode_fp4_rows(const WeightView& W, const Levels& levels, size_t row, size_t first,
                               size_t n, float* out) {
    const std::byte* header = W.base + row * W.row_bytes;
    const float row_scale = f16_to_f32(block_at<Fp4RowHeader>(header, 0).scale);
    const std::byte* blocks = header + sizeof(Fp4RowHeader);
    for (size_t b = first / 32; b < (first + n) / 32; ++b, out += 32) {
        const auto& block = block_at<Fp4Block<4>>(blocks, b);
        P::template lookup<4>(block.codes, 32, levels, row_scale * scale_of(block.scale), out);
    }
}

template <Scale scale_of>
struct Fp4Rows {
    static constexpr Prepare prepare = doubled(32, 2, 1);
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t n,
                                  float* out) {
        decode_fp4_rows<scale_of, P>(W, kE2M1, row, first, n, out);
    }
};

/// The levels are f16 in the sidecar.
struct Fp4Lloyd {
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t n,
                                  float* out) {
        Levels levels;
        for (size_t k = 0; k < 16; ++k) levels[k] = f16_to_f32(load<uint16_t>(W.sidecar + 2 * k));
        decode_fp4_rows<ue8m0_to_f32, P>(W, levels, row, first, n, out);
    }
};

struct Mxfp4 {
    using Block = Mxfp4Block;
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = doubled(32, 2, 16);
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        P::lookup_halves(b.nibbles, 32, kE2M1Gguf, ue8m0_to_f32(b.scale), out);
    }
};

struct Nvfp4 {
    using Block = Nvfp4Block;
    static constexpr size_t weights = 64;
    static constexpr Prepare prepare = doubled(16, 1, 64);
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        for (size_t r = 0; r < 4; ++r)
            P::lookup_halves(b.nibbles[r], 16, kE2M1Gguf, e4m3_gguf(b.scale[r]), out + 16 * r);
    }
};

}  // namespace

constinit const CpuOps fp4_ue8m0 = block_ops<Fp4Rows<ue8m0_to_f32>>();
constinit const CpuOps fp4_e4m3 = block_ops<Fp4Rows<e4m3_hfq>>();
constinit const CpuOps fp4_lloyd = block_ops<Fp4Lloyd>();
constinit const CpuOps mxfp4 = block_ops<Mxfp4>();
constinit const CpuOps nvfp4 = block_ops<Nvfp4>();

}  // namespace hf::cpu
