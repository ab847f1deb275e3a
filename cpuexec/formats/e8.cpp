// *e8*: points of the E8 lattice, in rows with a header: w = ((row scale * block scale) * step) *
// e8.
#include "cpuexec/formats/e8.h"

#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/e8_codes.h"
#include "cpuexec/formats/float8.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/fp4_rows.h"
#include "cpuexec/formats/int_ops.h"

namespace hf::cpu {
namespace {

/// Twice the coordinates are integers, less 2 * bias. Codes come in turns, even ones and odd ones.
template <unsigned n>
constexpr Prepare kDoubled = {
    .group = 32, .term = 32, .ways = 2, .chunk = 1, .offset = 2 * E8<n>::bias, .zeros = false};

/// What a code is worth in units of a block's scale.
template <unsigned n>
constexpr float kHalfStep = E8<n>::step * 0.5f;

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
struct E8Rows : Fp4Frame<Fp4Block<n>, E4m3, kHalfStep<n>> {
    static constexpr Prepare prepare = kDoubled<n>;
    static constexpr int code_max = (2 << n) - 1;
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
    HF_AVX2_INLINE static void unpack(avx2::Isa isa, const std::byte* w, size_t, size_t, size_t h,
                                      __m256i* codes) {
        e8_codes<n>(e8_words<n>(isa, w + 2 * h * sizeof(Fp4Block<n>)), codes);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa isa, const std::byte* w, size_t, size_t, size_t,
                                        __m512i* codes) {
        e8_codes<n>(e8_words<n>(isa, w), codes);
    }
};

/// All scales of the row, padded to a multiple of 16, then all codewords.
struct E8Soa : Fp4Scales<E4m3, kHalfStep<4>> {
    using Block = uint8_t[16];
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = kDoubled<4>;
    static constexpr int code_max = 31;
    static constexpr size_t blocks_at(size_t cols) {
        return sizeof(Fp4RowHeader) + (cols / 32 + 15) / 16 * 16;
    }
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t count,
                                  float* out) {
        const std::byte* header = W.base + row * W.row_bytes;
        const float row_scale = f16_to_f32(block_at<Fp4RowHeader>(header, 0).scale);
        const auto* scales = reinterpret_cast<const uint8_t*>(header) + sizeof(Fp4RowHeader);
        const auto* codes = reinterpret_cast<const uint8_t*>(header) + blocks_at(W.cols);
        for (size_t b = first / 32; b < (first + count) / 32; ++b, out += 32) {
            const float scale = row_scale * e4m3_hfq(scales[b]) * E8<4>::step;
            decode_words<4, P>(codes + b * 16, scale, out);
        }
    }
    HF_AVX2_INLINE static void unpack(avx2::Isa, const std::byte* w, size_t, size_t, size_t h,
                                      __m256i* codes) {
        e8_codes<4>(avx2::load_bytes(w + 32 * h), codes);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa, const std::byte* w, size_t, size_t, size_t,
                                        __m512i* codes) {
        e8_codes<4>(avx512::load_bytes(w), codes);
    }
    /// Four bytes of each row: a row that has fewer has bytes behind them.
    HF_AVX2_INLINE static __m128i block_scales(Rows rows, size_t column) {
        return rows_to_runs(load_rows(rows, sizeof(Fp4RowHeader) + column / 32));
    }
    HF_AVX2_INLINE static void scales(avx2::Isa, Rows, const Place<avx2::Floats>& place,
                                      avx2::Floats& scale, avx2::Floats&) {
        const __m128i bytes = block_scales(place.rows, place.column);
        const __m128i behind = _mm_srli_si128(bytes, 8);
        widen(place.row_scales, {{_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(behind)}},
              scale);
    }
    HF_AVX512_INLINE static void scales(avx512::Isa, Rows, const Place<avx512::Floats>& place,
                                        avx512::Floats& scale, avx512::Floats&) {
        widen(place.row_scales, block_scales(place.rows, place.column), scale);
    }
};

}  // namespace

constinit const CpuOps e8_4 = with_integers<E8Rows<4>>(block_ops<E8Rows<4>>());
constinit const CpuOps e8_3 = with_integers<E8Rows<3>>(block_ops<E8Rows<3>>());
constinit const CpuOps e8_2 = with_integers<E8Rows<2>>(block_ops<E8Rows<2>>());
constinit const CpuOps e8_4_soa = with_integers<E8Soa>(block_ops<E8Soa>());

}  // namespace hf::cpu
