// The f32 dots of 4-bit formats in AVX2 whose weights are scale * level + zero with levels of their
// own kind, not of their block: what levels.h does with a permutation of 16 floats.
//
// A vector has four lanes of each of two rows, so that bytes never cross its halves. All levels are
// bf16 numbers: two look-ups make their bytes, and two times interleaving makes floats of them, in
// the order of the codes. That is 4.5 to 4.75 instructions for eight products, fma and scaling
// among them, of three a cycle.
//
// Nothing is rounded that levels.h would not round.
#pragma once

#include <bit>

#include "cpuexec/formats/levels.h"

namespace hf::cpu {

template <class F>
concept HasNibbles = HasLevels<F> && HasIntegers<F> && F::packing.width == 4;

namespace avx2 {

/// Byte 3 and byte 2 of the levels.
template <class F>
struct LevelBytes {
    alignas(16) uint8_t high[16] = {}, low[16] = {};
    constexpr LevelBytes() {
        for (size_t k = 0; k < 16; ++k) {
            const auto bits = std::bit_cast<uint32_t>(kLevelsOfCodes<F>.v[k]);
            if (bits % 0x10000 != 0) throw "not a bf16 number";  // which does not compile
            high[k] = uint8_t(bits >> 24);
            low[k] = uint8_t(bits >> 16);
        }
    }
};
template <class F>
inline constexpr LevelBytes<F> kLevelBytes;

/// The numbers of two rows in their halves.
HF_AVX2_INLINE __m256 of_two_rows(const float* numbers) {
    const __m256 pairs =
        _mm256_castpd_ps(_mm256_broadcast_sd(reinterpret_cast<const double*>(numbers)));
    return _mm256_permutevar_ps(pairs, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}

/// Lanes 4j .. 4j + 3 of two rows and T columns.
template <size_t T>
using PairSums = __m256[T][4];

/// The weights of a run of two rows.
template <class F>
struct PairWeights {
    __m256 scale, zero;
    HF_AVX2_INLINE PairWeights(const TermScales<F>& scales, size_t run, size_t row) {
        scale = of_two_rows(scales.scale + run % 4 * 4 + row);
        if constexpr (F::prepare.zeros) zero = of_two_rows(scales.zero + run % 4 * 4 + row);
    }
    HF_AVX2_INLINE __m256 of(__m256 level) const {
        if constexpr (!F::prepare.zeros) return _mm256_mul_ps(scale, level);
        if constexpr (requires { F::exact_products; }) return _mm256_fmadd_ps(scale, level, zero);
        return _mm256_add_ps(_mm256_mul_ps(scale, level), zero);
    }
};

/// Adds the products of 16 codes of two rows with T columns.
template <class F, size_t T>
HF_AVX2_INLINE void add_sixteen(__m256i codes, const PairWeights<F>& weights, const float* x,
                                size_t stride, PairSums<T>& acc) {
    const __m256i high = _mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(
            _mm_load_si128(reinterpret_cast<const __m128i*>(kLevelBytes<F>.high))),
        codes);
    const __m256i low = _mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(
            _mm_load_si128(reinterpret_cast<const __m128i*>(kLevelBytes<F>.low))),
        codes);
    const __m256i words[2] = {_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high)};
    HF_UNROLL for (size_t j = 0; j < 4; ++j) {
        const __m256i zeros = _mm256_setzero_si256();
        const __m256i level = j % 2 == 0 ? _mm256_unpacklo_epi16(zeros, words[j / 2])
                                         : _mm256_unpackhi_epi16(zeros, words[j / 2]);
        const __m256 w = weights.of(_mm256_castsi256_ps(level));
        HF_UNROLL for (size_t t = 0; t < T; ++t) {
            const __m256 xs =
                _mm256_broadcast_ps(reinterpret_cast<const __m128*>(x + t * stride + 4 * j));
            acc[t][j] = _mm256_fmadd_ps(w, xs, acc[t][j]);
        }
    }
}

/// Adds the products of the runs that share bytes, from `run` on, of rows `row` and the next.
template <class F, size_t T>
HF_AVX2_INLINE void add_runs(const TermScales<F>& scales, Rows w, size_t row, size_t run,
                             const float* x, size_t stride, PairSums<T>& acc) {
    constexpr Packing p = F::packing;
    const std::byte *a = w[row] + F::codes_of(run), *b = w[row + 1] + F::codes_of(run);
    const PairWeights<F> weights(scales, run, row);
    if constexpr (p.kind == Packing::stream) {
        for (size_t i = 0; i < p.run; i += 32, a += 16, b += 16, x += 32) {
            const __m256i bytes = load_two(a, b);
            const __m256i low = low_nibbles(bytes), high = high_nibbles(bytes);
            add_sixteen<F, T>(_mm256_unpacklo_epi8(low, high), weights, x, stride, acc);
            add_sixteen<F, T>(_mm256_unpackhi_epi8(low, high), weights, x + 16, stride, acc);
        }
    } else if constexpr (p.run == 16) {
        const __m256i bytes =
            _mm256_set_m128i(_mm_set1_epi64x(load<int64_t>(b)), _mm_set1_epi64x(load<int64_t>(a)));
        const __m256i codes = _mm256_unpacklo_epi64(low_nibbles(bytes), high_nibbles(bytes));
        add_sixteen<F, T>(codes, weights, x, stride, acc);
    } else {
        constexpr size_t n = p.run * p.sharing() / 32;  // sixteens of low nibbles
        const PairWeights<F> others(scales, run + p.sharing() - 1, row);
        HF_UNROLL for (size_t i = 0; i < 2 * n; ++i) {
            const __m256i bytes = load_two(a + i % n * 16, b + i % n * 16);
            add_sixteen<F, T>(i < n ? low_nibbles(bytes) : high_nibbles(bytes),
                              i < n ? weights : others, x + 16 * i, stride, acc);
        }
    }
}

/// Lanes of a pair of rows: in memory, and side by side.
template <size_t T>
HF_AVX2_INLINE void load_pair(const Lanes* lanes, size_t row, PairSums<T>& acc) {
    HF_UNROLL for (size_t i = 0; i < T * 4; ++i) {
        acc[i / 4][i % 4] = _mm256_set_m128(_mm_loadu_ps(lanes[i / 4][row + 1] + i % 4 * 4),
                                            _mm_loadu_ps(lanes[i / 4][row] + i % 4 * 4));
    }
}
template <size_t T>
HF_AVX2_INLINE void store_pair(const PairSums<T>& acc, size_t row, Lanes* lanes) {
    HF_UNROLL for (size_t i = 0; i < T * 4; ++i) {
        const __m256 both = acc[i / 4][i % 4];
        _mm_storeu_ps(lanes[i / 4][row] + i % 4 * 4, _mm256_castps256_ps128(both));
        _mm_storeu_ps(lanes[i / 4][row + 1] + i % 4 * 4, _mm256_extractf128_ps(both, 1));
    }
}

/// Adds the products of n weights, whole steps, of each stream with T columns to their lanes: of
/// one pair of rows after the other, whose sums are in registers for four runs.
template <class F, size_t T>
HF_AVX2 HF_UNCHECKED void add_levels(const Streams& from, size_t n, const float* x, size_t stride,
                                     Lanes* lanes) {
    using S = Shape<F>;
    constexpr Packing p = F::packing;
    constexpr size_t fours = S::step / p.run / 4, lines = (S::step_bytes + 63) / 64;
    const std::byte* w[kStreams];
    __m256 sums[kStreams / 2][T][4];
    TermScales<F> scales;
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) w[s] = from.w[s];
    HF_UNROLL for (size_t pair = 0; pair < 2; ++pair) load_pair<T>(lanes, 2 * pair, sums[pair]);
    for (; n > 0; n -= S::step, x += S::step) {
        HF_UNROLL for (size_t v = 0; v < fours; ++v) {
            ask_ahead(w, v * lines / fours, (v + 1) * lines / fours);
            scales.load(Isa{}, w, v);
            HF_ROLLED for (size_t pair = 0; pair < kStreams / 2; ++pair) {
                PairSums<T> acc;
                std::memcpy(&acc, &sums[pair], sizeof(acc));
                HF_UNROLL for (size_t run = 4 * v; run < 4 * v + 4; run += p.sharing()) {
                    add_runs<F, T>(scales, w, 2 * pair, run, x + run * p.run, stride, acc);
                }
                std::memcpy(&sums[pair], &acc, sizeof(acc));
            }
        }
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) w[s] += S::step_bytes;
    }
    HF_UNROLL for (size_t pair = 0; pair < 2; ++pair) store_pair<T>(sums[pair], 2 * pair, lanes);
}

/// The same for any number of columns.
template <class F>
void add_level_columns_avx2(const Streams& from, size_t n, const float* x, size_t stride,
                            size_t count, Lanes* lanes) {
    constexpr AddTile kAdd[] = {add_levels<F, 1>, add_levels<F, 2>};
    add_by_tiles(kAdd, from, n, x, stride, count, lanes);
}

}  // namespace avx2

/// Puts the f32 dot in AVX2 into the functions of a format.
template <HasNibbles F>
constexpr CpuOps with_levels_avx2(CpuOps ops) {
    ops.dot[size_t(Level::avx2)][size_t(Activations::f32)] =
        dot_direct<stretch_avx2<F>, add_decoded_avx2, avx2::add_level_columns_avx2<F>,
                   Shape<F>::step>;
    return ops;
}

}  // namespace hf::cpu
