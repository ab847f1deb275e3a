// *fp4*: 4-bit floats (or 16 levels in their place) with 8-bit scales for runs of 16 or 32.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/codebooks.h"
#include "cpuexec/formats/float8.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/fp4_rows.h"
#include "cpuexec/formats/half_nibbles.h"
#include "cpuexec/formats/int_ops.h"
#include "cpuexec/formats/run_scales.h"

namespace hf::cpu {
namespace {

/// Twice the levels are integers, -12 .. 12. Codes come in the order of their nibbles: in turns, in
/// halves, or one after the other.
constexpr Prepare doubled(uint16_t term, uint8_t ways, uint8_t chunk) {
    return {.group = 32, .term = term, .ways = ways, .chunk = chunk, .offset = 12, .zeros = false};
}

/// Rows with a header: w[i] = (row scale * block scale) * L[q[i]].
template <class Scale, class P>
HF_INLINE void decode_fp4_rows(const WeightView& W, const Levels& levels, size_t row, size_t first,
                               size_t n, float* out) {
    const std::byte* header = W.base + row * W.row_bytes;
    const float row_scale = f16_to_f32(block_at<Fp4RowHeader>(header, 0).scale);
    const std::byte* blocks = header + sizeof(Fp4RowHeader);
    for (size_t b = first / 32; b < (first + n) / 32; ++b, out += 32) {
        const auto& block = block_at<Fp4Block<4>>(blocks, b);
        P::template lookup<4>(block.codes, 32, levels, row_scale * Scale::widen(block.scale), out);
    }
}

constexpr ByteLevels kDoubledBytes(kE2M1Gguf, /*times=*/2, /*more=*/12);
constexpr Levels kDoubledLevels = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr float kHalf = 0.5f;

/// Blocks are laid out as those of mxfp4, but for the columns of their nibbles.
template <class Scale>
struct Fp4Rows : HalfLevels<Mxfp4Block, kDoubledBytes>, Fp4Frame<Fp4Block<4>, Scale, kHalf> {
    static constexpr Prepare prepare = doubled(32, 2, 1);
    static constexpr int code_max = 24;
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t n,
                                  float* out) {
        decode_fp4_rows<Scale, P>(W, kE2M1, row, first, n, out);
    }
};

/// The levels are f16 in the sidecar.
struct Fp4Lloyd {
    template <class P>
    HF_INLINE static void stretch(const WeightView& W, size_t row, size_t first, size_t n,
                                  float* out) {
        Levels levels;
        for (size_t k = 0; k < 16; ++k) levels[k] = f16_to_f32(load<uint16_t>(W.sidecar + 2 * k));
        decode_fp4_rows<Ue8m0, P>(W, levels, row, first, n, out);
    }
};

struct Mxfp4 : HalfLevels<Mxfp4Block, kDoubledBytes> {
    using Block = Mxfp4Block;
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = doubled(32, 2, 16);
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        P::lookup_halves(b.nibbles, 32, kE2M1Gguf, ue8m0_to_f32(b.scale), out);
    }
    static constexpr int code_max = 24;
    static constexpr Packing packing = {Packing::halves, 32};
    static constexpr const Levels& levels = kDoubledLevels;
    static constexpr size_t codes_of(size_t term) { return nibbles_of<Block>(term); }
    HF_AVX2_INLINE static void scales(avx2::Isa isa, Rows w, size_t, avx2::Floats& scale,
                                      avx2::Floats&) {
        const avx2::Floats blocks = Ue8m0::widen(block_scales<Block>(isa, w));
        HF_UNROLL for (size_t h = 0; h < 2; ++h) scale.v[h] =
            _mm256_mul_ps(blocks.v[h], _mm256_set1_ps(kHalf));
    }
    HF_AVX512_INLINE static void scales(avx512::Isa isa, Rows w, size_t, avx512::Floats& scale,
                                        avx512::Floats&) {
        const avx512::Floats blocks = Ue8m0::widen(block_scales<Block>(isa, w));
        scale.v[0] = _mm512_mul_ps(blocks.v[0], _mm512_set1_ps(kHalf));
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
    static constexpr int code_max = 24;
    static constexpr Packing packing = {Packing::halves, 16};
    static constexpr const Levels& levels = kDoubledLevels;
    static constexpr size_t codes_of(size_t term) { return nibbles_of<Block>(0) + 8 * term; }
    /// Eight bytes of a run twice: low nibbles, then high ones.
    HF_AVX2_INLINE static void unpack(avx2::Isa, const std::byte* w, size_t, size_t, size_t h,
                                      __m256i* codes) {
        const __m256i bytes =
            _mm256_castsi128_si256(avx2::load_16(w + offsetof(Block, nibbles) + 16 * h));
        const __m256i twice = _mm256_permute4x64_epi64(bytes, _MM_SHUFFLE(1, 1, 0, 0));
        const __m256i shifted = _mm256_srlv_epi64(twice, _mm256_setr_epi64x(0, 4, 0, 4));
        codes[0] = look_up_bytes(kDoubledBytes, avx2::low_nibbles(shifted));
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa, const std::byte* w, size_t, size_t, size_t,
                                        __m512i* codes) {
        const __m512i bytes = _mm512_castsi256_si512(avx512::load_32(w + offsetof(Block, nibbles)));
        const __m512i twice =
            _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), bytes);
        const __m512i shifted = _mm512_srlv_epi64(twice, _mm512_setr_epi64(0, 4, 0, 4, 0, 4, 0, 4));
        codes[0] = look_up_bytes(kDoubledBytes, avx512::low_nibbles(shifted));
    }
    /// E4M3 as f16, whose exponents are 8 higher: 2^-8 of the scales.
    HF_AVX2_INLINE static __m256i scales_as_f16(Rows w) {
        const __m128i codes = rows_to_runs(load_rows(w, offsetof(Block, scale)));
        const __m128i zeros = _mm_cmpeq_epi8(codes, _mm_set1_epi8(0x7f));
        const __m128i valid = _mm_andnot_si128(zeros, _mm_and_si128(codes, _mm_set1_epi8(0x7f)));
        return _mm256_slli_epi16(_mm256_cvtepu8_epi16(valid), 7);
    }
    HF_AVX2_INLINE static void scales(avx2::Isa, Rows w, size_t, avx2::Floats& scale,
                                      avx2::Floats&) {
        const __m256i words = scales_as_f16(w);
        const __m256 half = _mm256_set1_ps(0x1p7f);
        scale.v[0] = _mm256_mul_ps(half, avx2::f16_to_floats(_mm256_castsi256_si128(words)));
        scale.v[1] = _mm256_mul_ps(half, avx2::f16_to_floats(_mm256_extracti128_si256(words, 1)));
    }
    HF_AVX512_INLINE static void scales(avx512::Isa, Rows w, size_t, avx512::Floats& scale,
                                        avx512::Floats&) {
        scale.v[0] = _mm512_mul_ps(_mm512_set1_ps(0x1p7f), avx512::f16_to_floats(scales_as_f16(w)));
    }
};

}  // namespace

constinit const CpuOps fp4_ue8m0 = with_integers<Fp4Rows<Ue8m0>>(block_ops<Fp4Rows<Ue8m0>>());
constinit const CpuOps fp4_e4m3 = with_integers<Fp4Rows<E4m3>>(block_ops<Fp4Rows<E4m3>>());
constinit const CpuOps fp4_lloyd = block_ops<Fp4Lloyd>();
constinit const CpuOps mxfp4 = with_integers<Mxfp4>(block_ops<Mxfp4>());
constinit const CpuOps nvfp4 = with_integers<Nvfp4>(block_ops<Nvfp4>());

}  // namespace hf::cpu
