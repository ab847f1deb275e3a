// *e8*: points of the E8 lattice, in rows with a header: w = ((row scale * block scale) * step) *
// e8.
#include "cpuexec/formats/e8.h"

#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/float8.h"
#include "cpuexec/formats/formats.h"

namespace hf::cpu {
namespace {

/// 32 weights, four codewords.
template <unsigned n>
HF_INLINE void decode_words(const uint8_t* codes, float scale, float* __restrict out) {
    for (size_t w = 0; w < 4; ++w, out += 8) {
        e8_decode<n>(uint32_t(load_bytes<n>(codes + w * n)), out);
        for (size_t i = 0; i < 8; ++i) out[i] = scale * out[i];
    }
}

/// Blocks of a scale and its codewords.
template <unsigned n>
struct E8Rows {
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t count,
                                  float* out) {
        const std::byte* header = W.base + row * W.row_bytes;
        const float row_scale = f16_to_f32(block_at<Fp4RowHeader>(header, 0).scale);
        const std::byte* blocks = header + sizeof(Fp4RowHeader);
        for (size_t b = first / 32; b < (first + count) / 32; ++b, out += 32) {
            const auto& block = block_at<Fp4Block<n>>(blocks, b);
            const float scale = row_scale * e4m3_hfq(block.scale) * E8<n>::step;
            decode_words<n>(block.codes, scale, out);
        }
    }
};

/// All scales of the row, padded to a multiple of 16, then all codewords.
struct E8Soa {
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t count,
                                  float* out) {
        const std::byte* header = W.base + row * W.row_bytes;
        const float row_scale = f16_to_f32(block_at<Fp4RowHeader>(header, 0).scale);
        const auto* scales = reinterpret_cast<const uint8_t*>(header) + sizeof(Fp4RowHeader);
        const uint8_t* codes = scales + (W.cols / 32 + 15) / 16 * 16;
        for (size_t b = first / 32; b < (first + count) / 32; ++b, out += 32) {
            const float scale = row_scale * e4m3_hfq(scales[b]) * E8<4>::step;
            decode_words<4>(codes + b * 16, scale, out);
        }
    }
};

constexpr Prepare kBy32 = {.group = 32, .offsets = false};

}  // namespace

constinit const CpuOps e8_4 = block_ops<E8Rows<4>>(kBy32);
constinit const CpuOps e8_3 = block_ops<E8Rows<3>>(kBy32);
constinit const CpuOps e8_2 = block_ops<E8Rows<2>>(kBy32);
constinit const CpuOps e8_4_soa = block_ops<E8Soa>(kBy32);

}  // namespace hf::cpu
