// The f32 dots of formats with codes of up to 4 bits, in AVX-512: the weights of a run are one of
// 16 levels or fewer, which are kept in registers as floats and chosen by the codes.
//
// Vectors are of 256 bits: so three ports share what eight weights need, a shift that brings codes
// to their lanes, a permutation that turns them into levels, and an fma.
//
// A format F with integers (dot_shape.h), whose runs are its terms, brings besides
//     F::packing          how the codes of a run lie in memory
//     F::codes_of(r)      where those of the r-th run of a step begin
//     F::levels           the level of each code, where it is not code - offset
// and one without, whose runs are blocks (block_ops.h),
//     F::packing
//     F::levels_of(block) a Table
#pragma once

#include "cpuexec/formats/avx2.h"
#include "cpuexec/formats/avx512.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/steps.h"

namespace hf::cpu {

/// How the codes of a run lie in memory. They are taken eight at a time: a vector has the same four
/// or eight bytes everywhere, and each lane is shifted by its own count.
struct Packing {
    enum Kind : uint8_t {
        stream,    // a bit stream, of which no byte before it is foreign if codes have 3 bits
        halves,    // nibbles in halves: low ones, then high ones
        by_turns,  // low nibbles of 32 bytes in even runs, high ones of the same bytes in odd runs
    } kind;
    size_t run;          // weights
    unsigned width = 4;  // bits of a code

    /// Eights of a run that are written out; after them codes are period() * width bytes further.
    constexpr size_t period() const { return kind == stream ? 4 : run / 8; }
    /// Where the bytes of an eight are, and how far above bit 0 its first code is.
    constexpr ptrdiff_t at(size_t eight) const {
        if (kind == by_turns) return ptrdiff_t(8 * eight);
        if (kind == halves) return ptrdiff_t(8 * eight % (run / 2));
        if (width == 3) return ptrdiff_t(3 * eight) - 1;  // nothing behind a run is read
        return ptrdiff_t(eight * width / 4 * 4);
    }
    constexpr int shift(size_t run_index, size_t eight) const {
        if (kind == by_turns) return run_index % 2 * 4;
        if (kind == halves) return int(8 * eight / (run / 2) * 4);
        return width == 3 ? 8 : int(eight * width % 4 * 8);
    }
};

/// Scales and zeros of four terms t and four rows s, at 4 t + s in memory.
template <class F>
struct TermScales {
    alignas(32) float scale[16];
    alignas(32) float zero[F::prepare.zeros ? 16 : 1];

    HF_AVX2_INLINE void load(Rows w, size_t v) {
        avx2::Floats s, z;
        F::scales(avx2::Isa{}, w, v, s, z);
        HF_UNROLL for (size_t h = 0; h < 2; ++h) {
            _mm256_store_ps(scale + 8 * h, s.v[h]);
            if constexpr (F::prepare.zeros) _mm256_store_ps(zero + 8 * h, z.v[h]);
        }
        asm("" : "+m"(scale), "+m"(zero));  // or they are taken out of registers by permutations
    }
};

namespace avx512 {

/// Levels 0..7 and 8..15; those of fewer bits are repeated.
struct Table {
    __m256 low, high;
};

/// Eight codes in the lowest bits of eight lanes, with others above them.
template <Packing p>
HF_AVX512_INLINE __m256i spread(const std::byte* codes, size_t run, size_t eight) {
    const std::byte* from = codes + p.at(eight);
    const int s = p.shift(run, eight), w = int(p.width);
    if constexpr (p.kind == Packing::stream) {
        const __m256i counts = _mm256_setr_epi32(s, s + w, s + 2 * w, s + 3 * w, s + 4 * w,
                                                 s + 5 * w, s + 6 * w, s + 7 * w);
        return _mm256_srlv_epi32(_mm256_set1_epi32(load<int32_t>(from)), counts);
    }
    constexpr bool wide = p.run >= 32;  // two eights share their bytes
    const int first = wide ? int(eight % 2 * 8) : 0;
    const __m256i picks = _mm256_setr_epi32(first, first + 1, first + 2, first + 3, first + 4,
                                            first + 5, first + 6, first + 7);
    const __m256i bytes = wide ? _mm256_broadcastsi128_si256(load_16(from - first))
                               : _mm256_set1_epi64x(load<int64_t>(from));
    return _mm256_shuffle_epi8(s > 0 ? _mm256_srli_epi64(bytes, 4) : bytes, picks);
}

template <unsigned width>
HF_AVX512_INLINE __m256 choose(const Table& table, __m256i codes) {
    if constexpr (width < 4) return _mm256_permutexvar_ps(codes, table.low);
    return _mm256_permutex2var_ps(table.low, codes, table.high);
}

/// The level of each code; those of fewer than 4 bits are repeated.
template <class F>
struct LevelsOfCodes {
    alignas(64) float v[16] = {};
    constexpr LevelsOfCodes() {
        for (size_t k = 0; k < 16; ++k) {
            const size_t code = k % (size_t(1) << F::packing.width);
            if constexpr (requires { F::levels; })
                v[k] = F::levels[code];
            else
                v[k] = float(int(code) - F::prepare.offset);
        }
    }
};
template <class F>
inline constexpr LevelsOfCodes<F> kLevelsOfCodes;

/// Tables of formats with integers: level * scale + zero, of four runs at a time.
template <class F>
class ScaledLevels {
  public:
    static constexpr size_t step = Shape<F>::step, step_bytes = Shape<F>::step_bytes;

    HF_AVX512_INLINE void prepare(Rows w, size_t v) { scales_.load(w, v); }
    HF_AVX512_INLINE Table table(Rows, size_t t, size_t s) const {
        Table table;
        table.low = eight_levels(kLevelsOfCodes<F>.v, 4 * t + s);
        if constexpr (F::packing.width == 4)
            table.high = eight_levels(kLevelsOfCodes<F>.v + 8, 4 * t + s);
        return table;
    }
    HF_AVX512_INLINE static const std::byte* codes(const std::byte* w, size_t run) {
        return w + F::codes_of(run);
    }

  private:
    HF_AVX512_INLINE __m256 eight_levels(const float* levels, size_t i) const {
        const __m256 scale = _mm256_set1_ps(scales_.scale[i]), level = _mm256_load_ps(levels);
        if constexpr (!F::prepare.zeros) return _mm256_mul_ps(scale, level);
        const __m256 zero = _mm256_set1_ps(scales_.zero[i]);
        if constexpr (requires { F::exact_products; }) return _mm256_fmadd_ps(scale, level, zero);
        return _mm256_add_ps(_mm256_mul_ps(scale, level), zero);
    }
    TermScales<F> scales_;
};

/// Tables of formats whose blocks have levels of their own.
template <class F>
struct OwnLevels {
    static constexpr size_t step = F::weights, step_bytes = sizeof(typename F::Block);

    HF_AVX512_INLINE void prepare(Rows, size_t) {}
    HF_AVX512_INLINE Table table(Rows w, size_t, size_t s) const { return F::levels_of(w[s]); }
    HF_AVX512_INLINE static const std::byte* codes(const std::byte* w, size_t) {
        return w + offsetof(typename F::Block, codes);
    }
};

template <class F>
struct TablesOf {
    using type = OwnLevels<F>;
};
template <class F>
requires requires {
    F::prepare;
}
struct TablesOf<F> {
    using type = ScaledLevels<F>;
};

/// Adds the products of a run of each row with T columns.
template <class F, size_t T>
HF_AVX512_INLINE void add_run(const typename TablesOf<F>::type& tables, Rows w, size_t run,
                              const float* x, size_t stride, __m256 (&acc)[T][kStreams]) {
    constexpr Packing p = F::packing;
    constexpr size_t period = p.period();
    Table table[kStreams];
    const std::byte* codes[kStreams];
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
        table[s] = tables.table(w, run % 4, s);
        codes[s] = tables.codes(w[s], run);
    }
    for (size_t i = 0; i < p.run; i += 8 * period, x += 8 * period) {
        HF_UNROLL for (size_t e = 0; e < period; ++e) {
            __m256 xs[T];
            HF_UNROLL for (size_t t = 0; t < T; ++t) {
                xs[t] = _mm256_loadu_ps(x + t * stride + 8 * e);
            }
            HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
                const __m256 weights =
                    choose<p.width>(table[s], spread<p>(codes[s] + i / 8 * p.width, run, e));
                HF_UNROLL for (size_t t = 0; t < T; ++t) {
                    acc[t][s] = _mm256_fmadd_ps(weights, xs[t], acc[t][s]);
                }
            }
        }
    }
}

/// Adds the products of n weights, whole steps, of each stream with T columns to their lanes.
template <class F, size_t T>
HF_AVX512 HF_UNCHECKED void add_levels(Rows rows, size_t n, const float* x, size_t stride,
                                       Lanes* lanes) {
    using Tables = typename TablesOf<F>::type;
    constexpr Packing p = F::packing;
    constexpr size_t runs = Tables::step / p.run;
    const std::byte* w[kStreams];
    __m256 acc[T][kStreams];
    Tables tables;
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) w[s] = rows[s];
    load_lanes(lanes, acc);
    for (; n > 0; n -= Tables::step, x += Tables::step) {
        HF_UNROLL for (size_t run = 0; run < runs; ++run) {
            constexpr size_t lines = (Tables::step_bytes + 63) / 64;
            ask_ahead(w, run * lines / runs, (run + 1) * lines / runs);
            if (run % 4 == 0) tables.prepare(w, run / 4);
            add_run<F, T>(tables, w, run, x + run * p.run, stride, acc);
        }
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) w[s] += Tables::step_bytes;
    }
    store_lanes(acc, lanes);
}

/// The same for any number of columns.
template <class F>
void add_columns_avx512(Rows w, size_t n, const float* x, size_t stride, size_t count,
                        Lanes* lanes) {
    constexpr AddTile kAdd[] = {add_levels<F, 1>, add_levels<F, 2>, add_levels<F, 3>};
    add_by_tiles(kAdd, w, n, x, stride, count, lanes);
}

}  // namespace avx512

template <class F>
concept HasLevels = requires {
    F::packing;
}
&&F::packing.width <= 4;

/// Adds the f32 dot in AVX-512 to the functions of a format.
template <class F>
constexpr CpuOps with_levels(CpuOps ops) {
    using Tables = typename avx512::TablesOf<F>::type;
    ops.dot[size_t(Level::avx512vnni)][size_t(Activations::f32)] =
        dot_direct<stretch_avx2<F>, avx512::add_columns_avx512<F>,
                   kChunk / Tables::step * Tables::step_bytes, Tables::step>;
    return ops;
}

}  // namespace hf::cpu
