// mq8g256, q8hfq: integers of a byte, as q8_0 in other frames.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/int_ops.h"
#include "cpuexec/formats/run_scales.h"

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
    static constexpr int code_max = 0;
    static constexpr size_t codes_of(size_t term) {
        return term / 2 * sizeof(Block) + offsetof(Block, q) + term % 2 * 128;
    }
    HF_AVX2_INLINE static void unpack(avx2::Isa, const std::byte* w, size_t, size_t k, size_t h,
                                      __m256i* codes) {
        codes[0] = avx2::load_bytes(w + codes_of(k) + 32 * h);
        codes[1] = avx2::load_bytes(w + codes_of(k) + 32 * h + 64);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa, const std::byte* w, size_t, size_t k, size_t,
                                        __m512i* codes) {
        codes[0] = avx512::load_bytes(w + codes_of(k));
        codes[1] = avx512::load_bytes(w + codes_of(k) + 64);
    }
    /// A scale for each two terms.
    HF_AVX2_INLINE static void scales(avx2::Isa, Rows w, size_t, avx2::Floats& scale,
                                      avx2::Floats&) {
        const __m128 first = load_f16_rows(w, 0), second = load_f16_rows(w, sizeof(Block));
        scale.v[0] = _mm256_set_m128(first, first);
        scale.v[1] = _mm256_set_m128(second, second);
    }
    HF_AVX512_INLINE static void scales(avx512::Isa, Rows w, size_t, avx512::Floats& scale,
                                        avx512::Floats&) {
        const __m512 first = _mm512_broadcast_f32x4(load_f16_rows(w, 0));
        scale.v[0] = _mm512_mask_broadcast_f32x4(first, 0xff00, load_f16_rows(w, sizeof(Block)));
    }
};

/// A row: f16 scales of its groups of 32, then its bytes, then padding to a multiple of 128.
struct Q8Hfq {
    using Block = int8_t[32];
    static constexpr size_t weights = 32;
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
    static constexpr int code_max = 0;
    static constexpr size_t blocks_at(size_t cols) { return cols / 32 * 2; }
    HF_AVX2_INLINE static void unpack(avx2::Isa, const std::byte* w, size_t, size_t k, size_t h,
                                      __m256i* codes) {
        codes[0] = avx2::load_bytes(w + 64 * k + 32 * h);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa, const std::byte* w, size_t, size_t k, size_t,
                                        __m512i* codes) {
        codes[0] = avx512::load_bytes(w + 64 * k);
    }
    /// Four f16 of each row, term by term. A row that has fewer has bytes behind them.
    template <class Floats>
    HF_AVX2_INLINE static __m256i words(const Place<Floats>& place) {
        __m128i rows[kStreams];
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
            const auto scales = load<int64_t>(place.rows[s] + place.column / 32 * 2);
            rows[s] = _mm_cvtsi64_si128(scales);
        }
        const __m128i a = _mm_unpacklo_epi16(rows[0], rows[1]);
        const __m128i b = _mm_unpacklo_epi16(rows[2], rows[3]);
        return _mm256_set_m128i(_mm_unpackhi_epi32(a, b), _mm_unpacklo_epi32(a, b));
    }
    HF_AVX2_INLINE static void scales(avx2::Isa, Rows, const Place<avx2::Floats>& place,
                                      avx2::Floats& scale, avx2::Floats&) {
        const __m256i all = words(place);
        scale.v[0] = avx2::f16_to_floats(_mm256_castsi256_si128(all));
        scale.v[1] = avx2::f16_to_floats(_mm256_extracti128_si256(all, 1));
    }
    HF_AVX512_INLINE static void scales(avx512::Isa, Rows, const Place<avx512::Floats>& place,
                                        avx512::Floats& scale, avx512::Floats&) {
        scale.v[0] = avx512::f16_to_floats(words(place));
    }
};

}  // namespace

constinit const CpuOps mq8 = with_integers<Mq8>(block_ops<Mq8>());
constinit const CpuOps q8hfq = with_integers<Q8Hfq>(block_ops<Q8Hfq>());

}  // namespace hf::cpu
