// Integer dots of many columns at once: weights are unpacked once for all columns, 16 neighbouring
// rows at a time, into panels. Products and their order are those of codec_ops.h.
//
// A panel holds 512 columns of 16 rows: one unit of activations.h, or 2, 4 or 8. Each vector of 64
// codes that dot_shape.h speaks of is a block of 1 KiB here, in one of two layouts:
//     quads   16 quads of codes, and of each quad 16 rows: a quad of 16 rows is a vector that meets
//             four activations of a column (VNNI). Codes are unsigned: signed ones are made 128
//             larger.
//     rows    16 rows of 64 codes: what a term has of them is a tile that meets activations which
//             lie in quads (AMX). In formats without zeros, codes are signed and without offset.
#pragma once

#include <cstdint>

#include "cpuexec/formats/avx512.h"

namespace hf::cpu {

inline constexpr size_t kPanelRows = 16, kPanelCols = 512;
inline constexpr size_t kMostStepBytes = 1024;  // of a row

struct Panel {
    alignas(64) std::byte codes[kPanelCols / 64][16][64];  // [vector][quad or row]
    alignas(64) float scale[8][4][kPanelRows];             // [unit][term][row]
    alignas(64) float zero[8][4][kPanelRows];
};

/// Writes a step, which begins with unit `unit` of the panel.
using UnpackPanel = void (*)(const std::byte* const (&rows)[kPanelRows], size_t unit, Panel& panel);

/// What the products with panels ask of a format; the fields are those of dot_shape.h's Shape.
struct PanelShape {
    Prepare prepare;
    size_t lanes, parts;  // of a term's codes
    size_t unit, step;    // columns
    size_t block_weights, block_bytes;
    UnpackPanel unpack_quads, unpack_rows;

    size_t step_bytes() const { return step / block_weights * block_bytes; }
};

/// Level amx is worth its set-up from kAmxColumns columns on, a panel from kPanelColumns.
inline constexpr size_t kAmxColumns = kManyColumns, kPanelColumns = 7;

namespace avx512 {

/// Four quads of 16 rows, those of a row at 16 bytes: the first four vectors of a transposition.
HF_AVX512_INLINE void transpose_quads(const __m512i (&part)[4], __m512i (&quads)[4]) {
    // Lane l of part[r]: row 4 l + r
    const __m512i a = _mm512_unpacklo_epi32(part[0], part[1]);
    const __m512i b = _mm512_unpackhi_epi32(part[0], part[1]);
    const __m512i c = _mm512_unpacklo_epi32(part[2], part[3]);
    const __m512i d = _mm512_unpackhi_epi32(part[2], part[3]);
    quads[0] = _mm512_unpacklo_epi64(a, c), quads[1] = _mm512_unpackhi_epi64(a, c);
    quads[2] = _mm512_unpacklo_epi64(b, d), quads[3] = _mm512_unpackhi_epi64(b, d);
}

/// Transposes 16 rows of 16 quads.
HF_AVX512_INLINE void transpose_rows(const std::byte (&rows)[16][64], std::byte (&to)[16][64]) {
    HF_UNROLL for (size_t j = 0; j < 4; ++j) {
        __m512i part[4], quads[4];
        HF_UNROLL for (size_t r = 0; r < 4; ++r) part[r] = load_four(rows[r] + 16 * j, 4 * 64);
        transpose_quads(part, quads);
        HF_UNROLL for (size_t q = 0; q < 4; ++q) _mm512_store_si512(to[4 * j + q], quads[q]);
    }
}

HF_AVX512_INLINE void store_terms(__m512 numbers, float (&to)[4][kPanelRows], size_t rows) {
    _mm_store_ps(to[0] + rows, _mm512_castps512_ps128(numbers));
    _mm_store_ps(to[1] + rows, _mm512_extractf32x4_ps(numbers, 1));
    _mm_store_ps(to[2] + rows, _mm512_extractf32x4_ps(numbers, 2));
    _mm_store_ps(to[3] + rows, _mm512_extractf32x4_ps(numbers, 3));
}

template <class F>
HF_AVX512_INLINE void unpack_scales(const std::byte* const (&rows)[kPanelRows], size_t v,
                                    size_t unit, Panel& p) {
    HF_UNROLL for (size_t r = 0; r < kPanelRows; r += kStreams) {
        const std::byte* const four[kStreams] = {rows[r], rows[r + 1], rows[r + 2], rows[r + 3]};
        Floats scale, zero;
        F::scales(Isa{}, four, v, scale, zero);
        store_terms(scale.v[0], p.scale[unit], r);
        if constexpr (F::prepare.zeros) store_terms(zero.v[0], p.zero[unit], r);
    }
}

enum class Layout { quads, rows };

/// A vector of codes as the layout wants them.
template <class F, Layout layout>
HF_AVX512_INLINE __m512i move_codes(__m512i codes) {
    constexpr bool is_signed = F::code_max == 0;
    constexpr int offset = F::prepare.offset;
    if constexpr (layout == Layout::quads)
        return is_signed ? _mm512_xor_si512(codes, _mm512_set1_epi8(int8_t(0x80))) : codes;
    static_assert(is_signed || F::prepare.zeros || (offset <= 128 && F::code_max - offset <= 127));
    return is_signed || offset == 0 ? codes
                                    : _mm512_sub_epi8(codes, _mm512_set1_epi8(int8_t(offset)));
}

/// Pile k of the v-th four terms.
template <class F, Layout layout>
HF_AVX512_INLINE void unpack_pile(const std::byte* const (&rows)[kPanelRows], size_t v, size_t k,
                                  std::byte (*vectors)[16][64]) {
    constexpr size_t parts = Shape<F>::parts;
    alignas(64) std::byte plain[parts][kPanelRows][64];
    for (size_t r = 0; r < kPanelRows; ++r) {
        __m512i codes[parts];
        F::unpack(Isa{}, rows[r], v, k, 0, codes);
        HF_UNROLL for (size_t m = 0; m < parts; ++m) {
            std::byte* to = layout == Layout::rows ? vectors[k * parts + m][r] : plain[m][r];
            _mm512_store_si512(to, move_codes<F, layout>(codes[m]));
        }
    }
    if constexpr (layout == Layout::quads) {
        // Else GCC takes lanes out of registers, by two shuffles each: three times as slow
        asm volatile("" : "+m"(plain));
        HF_UNROLL for (size_t m = 0; m < parts; ++m) {
            transpose_rows(plain[m], vectors[k * parts + m]);
        }
    }
}

template <class F, Layout layout>
HF_AVX512 HF_UNCHECKED void unpack_panel(const std::byte* const (&rows)[kPanelRows], size_t unit,
                                         Panel& panel) {
    using S = Shape<F>;
    static_assert(kPanelCols % S::step == 0 && S::step_bytes <= kMostStepBytes);
    HF_UNROLL for (size_t v = 0; v < S::step / S::unit; ++v, ++unit) {
        unpack_scales<F>(rows, v, unit, panel);
        HF_UNROLL for (size_t k = 0; k < S::lanes; ++k) {
            unpack_pile<F, layout>(rows, v, k, panel.codes + unit * S::lanes * S::parts);
        }
    }
}

template <class F>
inline constexpr PanelShape kPanelShape = {.prepare = F::prepare,
                                           .lanes = Shape<F>::lanes,
                                           .parts = Shape<F>::parts,
                                           .unit = Shape<F>::unit,
                                           .step = Shape<F>::step,
                                           .block_weights = F::weights,
                                           .block_bytes = sizeof(typename F::Block),
                                           .unpack_quads = unpack_panel<F, Layout::quads>,
                                           .unpack_rows = unpack_panel<F, Layout::rows>};

}  // namespace avx512

/// As `Dot`, with VNNI and with AMX. The CPU must have the level.
void dot_panels_avx512(const PanelShape& shape, Activations a, const WeightView& W, size_t r0,
                       size_t r1, const Columns& X, float* y, size_t y_stride);
void dot_panels_amx(const PanelShape& shape, Activations a, const WeightView& W, size_t r0,
                    size_t r1, const Columns& X, float* y, size_t y_stride);

}  // namespace hf::cpu
