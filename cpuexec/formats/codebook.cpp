// *lloyd*, *gl, mq4g256v2l: codes choose from a table, which lies in the group, in a sidecar, or
// here.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/codebooks.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/levels.h"

namespace hf::cpu {
namespace {

/// Levels of the group itself: w[i] = level[q[i]].
template <unsigned width>
struct Lloyd {
    using Block = LloydBlock<width>;
    static constexpr size_t weights = 256;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        Levels levels = {};
        for (size_t k = 0; k < 1 << width; ++k) levels[k] = f16_to_f32(b.level[k]);
        P::template lookup<width>(b.codes, 256, levels, 1, out);
    }
    static constexpr Packing packing = {Packing::stream, 256, width};
    static constexpr size_t side_bytes = 0;
    HF_AVX512_INLINE static __m512 levels_of(const std::byte* block, const std::byte*, size_t) {
        if constexpr (width == 4) return _mm512_cvtph_ps(avx512::load_32(block));
        const __m128i first =
            width == 3 ? avx512::load_16(block) : _mm_set1_epi64x(load<int64_t>(block));
        return _mm512_cvtph_ps(_mm256_broadcastsi128_si256(first));
    }
};

/// Levels of the format, scales of all groups in the sidecar: w[i] = scale * L[q[i]].
template <unsigned width>
struct Gl {
    using Block = GlBlock<width>;
    static constexpr size_t weights = 256;
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t n,
                                  float* out) {
        const size_t groups = W.cols / 256;
        const std::byte* blocks = W.base + row * W.row_bytes;
        for (size_t g = first / 256; g < (first + n) / 256; ++g, out += 256) {
            const float scale =
                f16_to_f32(load<uint16_t>(W.sidecar + (row * groups + g) * sizeof(uint16_t)));
            P::template lookup<width>(block_at<GlBlock<width>>(blocks, g).codes, 256,
                                      kGlLevels<width>, scale, out);
        }
    }
    static constexpr Packing packing = {Packing::stream, 256, width};
    static constexpr size_t side_bytes = sizeof(uint16_t);
    HF_AVX512_INLINE static __m512 levels_of(const std::byte*, const std::byte* scale, size_t) {
        const __m512 levels = _mm512_loadu_ps(kGlLevels<width>);
        const __m128i picks = _mm_set1_epi16(load<int16_t>(scale));
        return _mm512_mul_ps(_mm512_cvtph_ps(_mm256_broadcastsi128_si256(picks)),
                             width == 3 ? _mm512_shuffle_f32x4(levels, levels, 0x44)
                                        : _mm512_shuffle_f32x4(levels, levels, 0));
    }
};

/// The bytes of mq4g256v2 with levels in the sidecar: w[i] = scale * L[q[i]] + zero.
struct AffineV2Levels {
    using Block = AffineV2Block<4>;
    static constexpr size_t weights = 256;
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t n,
                                  float* out) {
        float levels[16];
        std::memcpy(levels, W.sidecar, sizeof(levels));
        const std::byte* blocks = W.base + row * W.row_bytes;
        for (size_t h = first / 128; h < (first + n) / 128; ++h, out += 128) {
            const auto& block = block_at<AffineV2Block<4>>(blocks, h / 2);
            const F16Pair pair = block.half[h % 2];
            const float scale = f16_to_f32(pair.scale), zero = f16_to_f32(pair.zero);
            Levels table;
            for (size_t k = 0; k < 16; ++k) table[k] = scale * levels[k] + zero;
            P::template lookup<4>(block.codes + h % 2 * 64, 128, table, 1, out);
        }
    }
    static constexpr Packing packing = {Packing::stream, 128};
    static constexpr size_t side_bytes = 0;
    HF_AVX512_INLINE static __m512 levels_of(const std::byte* block, const std::byte* levels,
                                             size_t half) {
        const int32_t pair = load<int32_t>(block + half * sizeof(F16Pair));
        const __m128 numbers = _mm_cvtph_ps(_mm_cvtsi32_si128(pair));
        const __m512 scale = _mm512_broadcastss_ps(numbers);
        const __m512 zero = _mm512_broadcastss_ps(_mm_movehdup_ps(numbers));
        return _mm512_add_ps(_mm512_mul_ps(scale, avx512::load_floats(levels)), zero);
    }
};

}  // namespace

constinit const CpuOps lloyd2 = with_levels<Lloyd<2>>(block_ops<Lloyd<2>>());
constinit const CpuOps lloyd3 = with_levels<Lloyd<3>>(block_ops<Lloyd<3>>());
constinit const CpuOps lloyd4 = with_levels<Lloyd<4>>(block_ops<Lloyd<4>>());
constinit const CpuOps gl2 = with_levels<Gl<2>>(block_ops<Gl<2>>());
constinit const CpuOps gl3 = with_levels<Gl<3>>(block_ops<Gl<3>>());
constinit const CpuOps affine4_v2_levels = with_levels<AffineV2Levels>(block_ops<AffineV2Levels>());

}  // namespace hf::cpu
