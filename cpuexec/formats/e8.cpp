// *e8*: points of the E8 lattice, in rows with a header: w = ((row scale * block scale) * step) *
// e8.
#include "cpuexec/formats/e8.h"

#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/float8.h"
#include "cpuexec/formats/formats.h"

namespace hf::cpu {
namespace {

/// Twice the coordinates are integers, less 2 * bias. Codes of 4 bits come in turns from low and
/// high nibbles.
template <unsigned n>
constexpr Prepare kDoubled = {.group = 32,
                              .term = 32,
                              .ways = n == 4 ? 2 : 1,
                              .chunk = n == 4 ? 1 : 64,
                              .offset = 2 * E8<n>::bias,
                              .zeros = false};

/// 32 weights, four codewords.
template <unsigned n, class P>
HF_INLINE void decode_words(const uint8_t* words, float scale, float* out) {
    uint8_t codes[32];
    for (size_t w = 0; w < 4; ++w)
        e8_decode<n>(uint32_t(load_bytes<n>(words + w * n)), codes + 8 * w);
    P::affine_bytes({codes, 0, 31}, 32, 2 * E8<n>::bias, scale * 0.5f, kNone, out);
}

/// Blocks of a scale and its codewords.
template <unsigned n>
struct E8Rows {
    static constexpr Prepare prepare = kDoubled<n>;
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t count,
                                  float* out) {
        const std::byte* header = W.base + row * W.row_bytes;
        const float row_scale = f16_to_f32(block_at<Fp4RowHeader>(header, 0).scale);
        const std::byte* blocks = header + sizeof(Fp4RowHeader);
        for (size_t b = first / 32; b < (first + count) / 32; ++b, out += 32) {
            const auto& block = block_at<Fp4Block<n>>(blocks, b);
            const float scale = row_scale * e4m3_hfq(block.scale) * E8<n>::step;
            decode_words<n, P>(block.codes, scale, out);
        }
    }
};

/// All scales of the row, padded to a multiple of 16, then all codewords.
struct E8Soa {
    static constexpr Prepare prepare = kDoubled<4>;
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t count,
                                  float* out) {
        const std::byte* header = W.base + row * W.row_bytes;
        const float row_scale = f16_to_f32(block_at<Fp4RowHeader>(header, 0).scale);
        const auto* scales = reinterpret_cast<const uint8_t*>(header) + sizeof(Fp4RowHeader);
        const uint8_t* codes = scales + (W.cols / 32 + 15) / 16 * 16;
        for (size_t b = first / 32; b < (first + count) / 32; ++b, out += 32) {
            const float scale = row_scale * e4m3_hfq(scales[b]) * E8<4>::step;
            decode_words<4, P>(codes + b * 16, scale, out);
        }
    }
};

}  // namespace

// Rows with a header are f32 only so far: of integers they have the plain dot
constinit const CpuOps e8_4 = block_ops<E8Rows<4>>();
constinit const CpuOps e8_3 = block_ops<E8Rows<3>>();
constinit const CpuOps e8_2 = block_ops<E8Rows<2>>();
constinit const CpuOps e8_4_soa = block_ops<E8Soa>();

}  // namespace hf::cpu
