// Turns with VNNI: four codes of a row, spread over a vector, meet the quads of its columns.
#pragma once

#include "cpuexec/formats/batch_turns.h"

namespace hf::cpu {

template <Activations a, bool zeros, size_t width>
struct Avx512Turns {
    static constexpr Signs signs = Signs::none;
    static constexpr size_t planes = code_bytes(a);
    static constexpr size_t some = 8;  // vectors whose sums are in registers at a time
    struct Setup {
        explicit Setup(const TermShape&) {}
    };

    /// Four codes of a vector's row, or two.
    HF_AVX512_INLINE static __m512i spread_codes(const std::byte* rows, size_t v) {
        if constexpr (width == kTileColumns) return _mm512_set1_epi32(load<int32_t>(rows + 64 * v));
        const __m512i first = _mm512_set1_epi32(load<int32_t>(rows + 128 * v));
        return _mm512_mask_set1_epi32(first, 0xff00, load<int32_t>(rows + 128 * v + 64));
    }

    /// The exact sums of a term for `some` vectors that begin at row `w`.
    HF_AVX512_INLINE static void multiply(const TermShape& shape, const std::byte* w,
                                          const std::byte* x, __m512i (&sums)[some]) {
        __m512i plane[planes][some];
        HF_UNROLL for (size_t p = 0; p < planes; ++p) {
            HF_UNROLL for (size_t v = 0; v < some; ++v) plane[p][v] = _mm512_setzero_si512();
        }
        for (size_t part = 0; part < shape.parts; ++part) {
            for (size_t q = 0; q < shape.quads; ++q) {
                __m512i quad[planes];
                HF_UNROLL for (size_t p = 0; p < planes; ++p) quad[p] =
                    load_quad(x + p * shape.plane_bytes() + q * shape.quad_bytes());
                HF_UNROLL for (size_t v = 0; v < some; ++v) {
                    const __m512i codes = spread_codes(w + 4 * q, v);
                    HF_UNROLL for (size_t p = 0; p < planes; ++p) plane[p][v] =
                        _mm512_dpbusd_epi32(plane[p][v], codes, quad[p]);
                }
            }
            w += sizeof(Panel::codes[0]), x += shape.part_bytes();
        }
        HF_UNROLL for (size_t v = 0; v < some; ++v) {
            sums[v] = plane[0][v];
            if constexpr (planes == 2)
                sums[v] = _mm512_add_epi32(_mm512_slli_epi32(sums[v], 8), plane[1][v]);
        }
    }

    /// Four activations of 16 columns, or of 8 twice.
    HF_AVX512_INLINE static __m512i load_quad(const std::byte* x) {
        if constexpr (width == kTileColumns) return _mm512_load_si512(x);
        return _mm512_broadcast_i64x4(avx512::load_32(x));
    }

    HF_AVX512 HF_UNCHECKED static void run(const Tile& given, TileLanes& lanes,
                                           ReadAhead& given_ahead) {
        const Tile tile = given;  // what lies behind a reference is read again after each store
        const TermShape shape = tile.shape;
        ReadAhead ahead = given_ahead;
        for (size_t term = 0; term < tile.terms; ++term) {
            const std::byte* w = shape.codes(tile.panel, term % 4) +
                                 term / 4 * shape.vectors() * sizeof(Panel::codes[0]);
            const std::byte* x = tile.x + term * shape.term_bytes();
            const avx512::Scales<width> scales(tile, term);
            ahead.turn();
            for (size_t first = 0; first < width; first += some) {
                __m512i sums[some];
                multiply(shape, w + first * 64, x, sums);
                HF_UNROLL for (size_t v = 0; v < some; ++v) {
                    float* at = lanes.v[term % 4][first + v];
                    if constexpr (!zeros)  // s is the integer that all codes' offset makes
                        sums[v] = _mm512_sub_epi32(sums[v], _mm512_castps_si512(scales.s));
                    __m512 lane = _mm512_load_ps(at);
                    scales.template add<zeros>(sums[v], first + v, lane);
                    _mm512_store_ps(at, lane);
                }
            }
        }
        given_ahead = ahead;
    }
};

}  // namespace hf::cpu
