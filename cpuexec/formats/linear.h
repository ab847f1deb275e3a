// The f32 dots of 4-bit formats in AVX2 whose weights are scale * (code - offset) + zero: codes are
// converted, since AVX2 has no permutation of 16 levels (levels.h).
//
// Nothing is rounded that levels.h would not round: products of scale and code are exact, or there
// is no zero. Codes stay where they are in their dwords, times a power of two, of which the scale
// is divided.
#pragma once

#include "cpuexec/formats/levels.h"

namespace hf::cpu {

template <class F>
concept HasLinearNibbles = requires {
    F::packing;
}
&&F::packing.width == 4 && !requires {
    F::levels;
}
&&(!F::prepare.zeros || requires { F::exact_products; });

namespace avx2 {

/// Bytes first .. first + 3 of the low lane and first + 4 .. first + 7 of the high one, as byte
/// `at` of dwords.
HF_AVX2_INLINE __m256i bytes_to_dwords(__m256i bytes, int first, int at) {
    const int up = 8 * at, zeros = int(0x80808080u & ~(0xffu << up));
    const __m256i picks = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i moved = _mm256_slli_epi32(_mm256_add_epi32(picks, _mm256_set1_epi32(first)), up);
    return _mm256_shuffle_epi8(bytes, _mm256_or_si256(moved, _mm256_set1_epi32(zeros)));
}

/// Eight codes of F, each in a dword of its own, less the offset, times in_dwords<F>().
template <class F>
HF_AVX2_INLINE __m256i codes_in_dwords(const std::byte* codes, size_t run, size_t eight) {
    constexpr Packing p = F::packing;
    const std::byte* from = codes + p.at(eight);
    if constexpr (p.kind == Packing::stream) {
        const __m256i pairs = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
        const __m256i picks = _mm256_or_si256(pairs, _mm256_set1_epi32(int(0x80808000)));
        const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(load<int32_t>(from)), picks);
        return _mm256_and_si256(bytes, _mm256_set1_epi64x(0x000000f00000000f));
    }
    constexpr bool is_signed = F::prepare.offset == 8;  // nibbles with the top bit turned
    const bool high = p.shift(run, eight) > 0, second = eight % 2 == 1;
    __m256i bytes = _mm256_broadcastsi128_si256(load_16(from - (second ? 8 : 0)));
    if constexpr (is_signed) {
        bytes = _mm256_xor_si256(high ? bytes : _mm256_slli_epi16(bytes, 4),
                                 _mm256_set1_epi8(char(0x80)));
        bytes = _mm256_and_si256(bytes, _mm256_set1_epi8(char(0xf0)));
    } else {
        bytes = high ? high_nibbles(bytes) : low_nibbles(bytes);
    }
    return bytes_to_dwords(bytes, second ? 8 : 0, is_signed ? 3 : 0);
}

/// What scales are multiplied by.
template <class F>
HF_AVX2_INLINE __m256 over_dwords() {
    if constexpr (F::packing.kind == Packing::stream)
        return _mm256_setr_ps(1, 0x1p-4f, 1, 0x1p-4f, 1, 0x1p-4f, 1, 0x1p-4f);
    return _mm256_set1_ps(F::prepare.offset == 8 ? 0x1p-28f : 1);
}

/// Adds the products of a run of each row with T columns.
template <class F, size_t T>
HF_AVX2_INLINE void add_linear_run(const TermScales<F>& scales, Rows w, size_t run, const float* x,
                                   size_t stride, __m256 (&acc)[T][kStreams]) {
    constexpr Packing p = F::packing;
    constexpr size_t period = p.period();
    __m256 scale[kStreams], zero[kStreams];
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
        const size_t i = run % 4 * 4 + s;
        scale[s] = _mm256_mul_ps(_mm256_set1_ps(scales.scale[i]), over_dwords<F>());
        if constexpr (F::prepare.zeros) zero[s] = _mm256_set1_ps(scales.zero[i]);
    }
    for (size_t i = 0; i < p.run; i += 8 * period, x += 8 * period) {
        HF_UNROLL for (size_t e = 0; e < period; ++e) {
            __m256 xs[T];
            HF_UNROLL for (size_t t = 0; t < T; ++t) xs[t] =
                _mm256_loadu_ps(x + t * stride + 8 * e);
            HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
                const std::byte* codes = w[s] + F::codes_of(run) + i / 2;
                const __m256 q = to_floats(codes_in_dwords<F>(codes, run, e));
                __m256 weights;
                if constexpr (F::prepare.zeros)
                    weights = _mm256_fmadd_ps(scale[s], q, zero[s]);
                else
                    weights = _mm256_mul_ps(scale[s], q);
                HF_UNROLL for (size_t t = 0; t < T; ++t) {
                    acc[t][s] = _mm256_fmadd_ps(weights, xs[t], acc[t][s]);
                }
            }
        }
    }
}

/// Adds the products of n weights, whole steps, of each stream with T columns to their lanes.
template <class F, size_t T>
HF_AVX2 HF_UNCHECKED void add_linear(Rows rows, size_t n, const float* x, size_t stride,
                                     Lanes* lanes) {
    using S = Shape<F>;
    constexpr size_t runs = S::step / F::packing.run, lines = (S::step_bytes + 63) / 64;
    const std::byte* w[kStreams];
    __m256 acc[T][kStreams];
    TermScales<F> scales;
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) w[s] = rows[s];
    load_lanes(lanes, acc);
    for (; n > 0; n -= S::step, x += S::step) {
        HF_UNROLL for (size_t run = 0; run < runs; ++run) {
            ask_ahead(w, run * lines / runs, (run + 1) * lines / runs);
            if (run % 4 == 0) scales.load(w, run / 4);
            add_linear_run<F, T>(scales, w, run, x + run * F::packing.run, stride, acc);
        }
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) w[s] += S::step_bytes;
    }
    store_lanes(acc, lanes);
}

/// The same for any number of columns.
template <class F>
void add_linear_columns_avx2(Rows w, size_t n, const float* x, size_t stride, size_t count,
                             Lanes* lanes) {
    constexpr AddTile kAdd[] = {add_linear<F, 1>, add_linear<F, 2>};
    add_by_tiles(kAdd, w, n, x, stride, count, lanes);
}

}  // namespace avx2

/// Puts the f32 dot in AVX2 into the functions of a format.
template <HasLinearNibbles F>
constexpr CpuOps with_linear(CpuOps ops) {
    using S = Shape<F>;
    ops.dot[size_t(Level::avx2)][size_t(Activations::f32)] =
        dot_direct<stretch_avx2<F>, avx2::add_linear_columns_avx2<F>,
                   kChunk / S::step * S::step_bytes, S::step>;
    return ops;
}

}  // namespace hf::cpu
