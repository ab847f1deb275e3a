// The f32 dots of formats with codes of up to 4 bits, in AVX-512: the weights of a run are one of
// 16 levels or fewer, which one register holds as floats, and which the codes choose.
//
// A vector is the 16 lanes of a row. Three instructions on two ports make 16 products: a shift that
// brings codes to their lanes, a permutation that turns them into levels (it looks at the lowest
// four bits of each lane, so nothing has to be masked), and an fma.
//
// A format F with integers (dot_shape.h), whose runs are its terms, brings besides
//     F::packing          how the codes of a run lie in memory
//     F::codes_of(r)      where those of the r-th run of a step begin
//     F::levels           the level of each code, where it is not code - offset
// and one without, with a Block (block_ops.h) whose codes lie one after the other,
//     F::packing
//     F::levels_of(block, side, r)     the levels of its r-th run, those of fewer bits repeated
//     F::side_bytes                    if levels need the sidecar: its bytes for a block
#pragma once

#include "cpuexec/formats/avx2.h"
#include "cpuexec/formats/avx512.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/steps.h"

namespace hf::cpu {

/// How the codes of a run lie in memory.
struct Packing {
    enum Kind : uint8_t {
        stream,    // a bit stream; runs of 128 or 256
        halves,    // nibbles in halves: low ones, then high ones
        by_turns,  // low nibbles of 32 bytes in even runs, high ones of the same bytes in odd runs
    } kind;
    size_t run;          // weights
    unsigned width = 4;  // bits of a code

    /// Runs that share their bytes.
    constexpr size_t sharing() const { return kind == by_turns ? 2 : 1; }
};

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

/// Scales and zeros of four terms t and four rows s, at 4 t + s in memory.
template <class F>
struct TermScales {
    alignas(64) float scale[16];
    alignas(64) float zero[F::prepare.zeros ? 16 : 1];

    HF_AVX2_INLINE void load(avx2::Isa isa, Rows w, size_t v) {
        avx2::Floats s, z;
        F::scales(isa, w, v, s, z);
        HF_UNROLL for (size_t h = 0; h < 2; ++h) {
            _mm256_store_ps(scale + 8 * h, s.v[h]);
            if constexpr (F::prepare.zeros) _mm256_store_ps(zero + 8 * h, z.v[h]);
        }
        keep_in_memory();
    }
    HF_AVX512_INLINE void load(avx512::Isa isa, Rows w, size_t v) {
        avx512::Floats s, z;
        F::scales(isa, w, v, s, z);
        _mm512_store_ps(scale, s.v[0]);
        if constexpr (F::prepare.zeros) _mm512_store_ps(zero, z.v[0]);
        keep_in_memory();
    }

  private:
    HF_INLINE void keep_in_memory() {  // or they are taken out of registers by permutations
        asm("" : "+m"(scale), "+m"(zero));
    }
};

namespace avx512 {

/// Lanes of a register. Codes of 4 bits come in turns from two dwords: those of elements 0 and 8,
/// of 1 and 9, and so on, and activations with them.
template <Packing p>
inline constexpr bool in_turns = p.kind == Packing::stream&& p.width == 4;

template <Packing p>
HF_AVX512_INLINE __m512 to_lanes(__m512 elements) {
    if constexpr (!in_turns<p>) return elements;
    return _mm512_permutexvar_ps(
        _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15), elements);
}
template <Packing p>
HF_AVX512_INLINE __m512 from_lanes(__m512 lanes) {
    if constexpr (!in_turns<p>) return lanes;
    return _mm512_permutexvar_ps(
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15), lanes);
}

/// Lane l of each 16 lanes: eight bits from bit first + l * width on, of eight bytes.
HF_AVX512_INLINE __m512i pick_bits(const std::byte* from, int first, int width) {
    __m512i at = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    at = _mm512_or_si512(at, _mm512_slli_epi64(_mm512_add_epi64(at, _mm512_set1_epi64(1)), 32));
    at = _mm512_add_epi32(_mm512_mullo_epi32(at, _mm512_set1_epi32(width)),
                          _mm512_set1_epi32(first));
    return _mm512_multishift_epi64_epi8(at, _mm512_set1_epi64(load<int64_t>(from)));
}

/// The g-th 16 codes of 128 in a stream, in the lowest bits of 16 lanes with others above them.
template <unsigned width>
HF_AVX512_INLINE __m512i spread(const std::byte* codes, size_t g) {
    if constexpr (width == 4) {
        const __m512i counts = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
        return _mm512_srlv_epi64(_mm512_set1_epi64(load<int64_t>(codes + 8 * g)), counts);
    } else if constexpr (width == 3) {  // nothing before the first code is read, or behind the last
        return g == 0 ? pick_bits(codes, 0, 3) : pick_bits(codes + 6 * g - 2, 16, 3);
    } else {
        const int w = int(width), first = width == 1 ? int(g % 2 * 16) : 0;
        const __m512i lane =
            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __m512i counts = _mm512_add_epi32(_mm512_mullo_epi32(lane, _mm512_set1_epi32(w)),
                                                _mm512_set1_epi32(first));
        const std::byte* from = codes + g * width / 2 * 4;
        return _mm512_srlv_epi32(_mm512_set1_epi32(load<int32_t>(from)), counts);
    }
}

/// Levels of formats with integers: level * scale + zero, of four runs at a time.
template <class F>
class ScaledLevels {
  public:
    static constexpr size_t step = Shape<F>::step, step_bytes = Shape<F>::step_bytes;
    static constexpr size_t side_bytes = 0;

    HF_AVX512_INLINE void prepare(Rows w, size_t v) { scales_.load(Isa{}, w, v); }
    HF_AVX512_INLINE __m512 levels(const Streams&, size_t run, size_t s) const {
        const size_t i = run % 4 * 4 + s;
        const __m512 scale = _mm512_set1_ps(scales_.scale[i]);
        const __m512 level = _mm512_load_ps(kLevelsOfCodes<F>.v);
        if constexpr (!F::prepare.zeros) return _mm512_mul_ps(scale, level);
        const __m512 zero = _mm512_set1_ps(scales_.zero[i]);
        if constexpr (requires { F::exact_products; }) return _mm512_fmadd_ps(scale, level, zero);
        return _mm512_add_ps(_mm512_mul_ps(scale, level), zero);
    }
    static constexpr size_t codes_of(size_t run) { return F::codes_of(run); }

  private:
    TermScales<F> scales_;
};

/// Levels of formats whose blocks have their own.
template <class F>
struct OwnLevels {
    static constexpr size_t step = F::weights, step_bytes = sizeof(typename F::Block);
    static constexpr size_t side_bytes = F::side_bytes;

    HF_AVX512_INLINE void prepare(Rows, size_t) {}
    HF_AVX512_INLINE __m512 levels(const Streams& at, size_t run, size_t s) const {
        return F::levels_of(at.w[s], at.side[s], run);
    }
    static constexpr size_t codes_of(size_t run) {
        return offsetof(typename F::Block, codes) + run * F::packing.run / 8 * F::packing.width;
    }
};

template <class F>
struct LevelsOf {
    using type = OwnLevels<F>;
};
template <class F>
requires requires {
    F::prepare;
}
struct LevelsOf<F> {
    using type = ScaledLevels<F>;
};

template <size_t T>
using Sums = __m512[T][kStreams];

/// 16 elements of T columns.
template <Packing p, size_t T>
HF_AVX512_INLINE void load_columns(const float* x, size_t stride, __m512 (&xs)[T]) {
    HF_UNROLL for (size_t t = 0; t < T; ++t) {
        xs[t] = to_lanes<p>(_mm512_loadu_ps(x + t * stride));
    }
}
/// Adds the products of 16 weights of stream s.
template <size_t T>
HF_AVX512_INLINE void add_sixteen(__m512i codes, __m512 levels, const __m512 (&xs)[T], size_t s,
                                  Sums<T>& acc) {
    const __m512 weights = _mm512_permutexvar_ps(codes, levels);
    HF_UNROLL for (size_t t = 0; t < T; ++t) acc[t][s] = _mm512_fmadd_ps(weights, xs[t], acc[t][s]);
}

/// A run in a bit stream.
template <Packing p, size_t T>
HF_AVX512_INLINE void add_stream(const std::byte* const (&codes)[kStreams],
                                 const __m512 (&levels)[kStreams], const float* x, size_t stride,
                                 Sums<T>& acc) {
    static_assert(p.run % 128 == 0);
    for (size_t i = 0; i < p.run; i += 128, x += 128) {
        HF_UNROLL for (size_t g = 0; g < 8; ++g) {
            __m512 xs[T];
            load_columns<p>(x + 16 * g, stride, xs);
            HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
                add_sixteen(spread<p.width>(codes[s] + i / 8 * p.width, g), levels[s], xs, s, acc);
            }
        }
    }
}

/// Low nibbles of some bytes, then high ones, of other levels if they are another run.
template <Packing p, size_t T>
HF_AVX512_INLINE void add_nibbles(const std::byte* const (&codes)[kStreams],
                                  const __m512 (&low)[kStreams], const __m512 (&high)[kStreams],
                                  const float* x, size_t stride, Sums<T>& acc) {
    constexpr size_t n = p.run * p.sharing() / 32;  // sixteens of low nibbles
    __m512i bytes[kStreams][n];
    HF_UNROLL for (size_t i = 0; i < 2 * n; ++i) {
        __m512 xs[T];
        load_columns<p>(x + 16 * i, stride, xs);
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
            __m512i& b = bytes[s][i % n];
            b = i < n ? _mm512_cvtepu8_epi32(load_16(codes[s] + 16 * i)) : _mm512_srli_epi32(b, 4);
            add_sixteen(b, i < n ? low[s] : high[s], xs, s, acc);
        }
    }
}

/// Eight bytes: low nibbles, then high ones.
template <size_t T>
HF_AVX512_INLINE void add_eight_bytes(const std::byte* const (&codes)[kStreams],
                                      const __m512 (&levels)[kStreams], const float* x,
                                      size_t stride, Sums<T>& acc) {
    const __m512i first = _mm512_setr_epi64(0x800000000, 0x1800000010, 0x2800000020, 0x3800000030,
                                            0xc00000004, 0x1c00000014, 0x2c00000024, 0x3c00000034);
    __m512 xs[T];
    load_columns<Packing{Packing::halves, 16}>(x, stride, xs);
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
        const __m512i bytes = _mm512_set1_epi64(load<int64_t>(codes[s]));
        add_sixteen(_mm512_multishift_epi64_epi8(first, bytes), levels[s], xs, s, acc);
    }
}

/// Adds the products of the runs that share bytes, from `run` on.
template <class F, size_t T>
HF_AVX512_INLINE void add_runs(const typename LevelsOf<F>::type& of, const Streams& at, size_t run,
                               const float* x, size_t stride, Sums<T>& acc) {
    constexpr Packing p = F::packing;
    __m512 levels[p.sharing()][kStreams];
    const std::byte* codes[kStreams];
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
        codes[s] = at.w[s] + of.codes_of(run);
        levels[0][s] = of.levels(at, run, s);
        if constexpr (p.sharing() == 2) levels[1][s] = of.levels(at, run + 1, s);
    }
    if constexpr (p.kind == Packing::stream)
        add_stream<p>(codes, levels[0], x, stride, acc);
    else if constexpr (p.run == 16)
        add_eight_bytes(codes, levels[0], x, stride, acc);
    else
        add_nibbles<p>(codes, levels[0], levels[p.sharing() - 1], x, stride, acc);
}

/// Adds the products of n weights, whole steps, of each stream with T columns to their lanes.
template <class F, size_t T>
HF_AVX512 HF_UNCHECKED void add_levels(const Streams& from, size_t n, const float* x, size_t stride,
                                       Lanes* lanes) {
    using Of = typename LevelsOf<F>::type;
    constexpr Packing p = F::packing;
    constexpr size_t runs = Of::step / p.run, lines = (Of::step_bytes + 63) / 64;
    Streams at;
    Sums<T> acc;
    Of levels;
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
        at.w[s] = from.w[s], at.side[s] = from.side[s];
        HF_UNROLL for (size_t t = 0; t < T; ++t) {
            acc[t][s] = to_lanes<p>(_mm512_loadu_ps(lanes[t][s]));
        }
    }
    for (; n > 0; n -= Of::step, x += Of::step) {
        HF_UNROLL for (size_t run = 0; run < runs; run += p.sharing()) {
            ask_ahead(at.w, run * lines / runs, (run + p.sharing()) * lines / runs);
            if (run % 4 == 0) levels.prepare(at.w, run / 4);
            add_runs<F>(levels, at, run, x + run * p.run, stride, acc);
        }
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
            at.w[s] += Of::step_bytes;
            at.side[s] += Of::side_bytes;
        }
    }
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
        HF_UNROLL for (size_t t = 0; t < T; ++t) {
            _mm512_storeu_ps(lanes[t][s], from_lanes<p>(acc[t][s]));
        }
    }
}

/// The same for any number of columns.
template <class F>
void add_columns_avx512(const Streams& from, size_t n, const float* x, size_t stride, size_t count,
                        Lanes* lanes) {
    constexpr AddTile kAdd[] = {add_levels<F, 1>, add_levels<F, 2>, add_levels<F, 3>};
    add_by_tiles(kAdd, from, n, x, stride, count, lanes);
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
    using Of = typename avx512::LevelsOf<F>::type;
    ops.dot[size_t(Level::avx512vnni)][size_t(Activations::f32)] =
        dot_direct<stretch_avx2<F>, add_decoded_avx512, avx512::add_columns_avx512<F>, Of::step,
                   Of::side_bytes>;
    return ops;
}

}  // namespace hf::cpu
