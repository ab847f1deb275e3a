// Integer dots of many columns at once: weights are unpacked once for all columns, 16 neighbouring
// rows at a time, into panels. Products and their order are those of codec_ops.h.
//
// A panel holds 512 columns of 16 rows: one unit of activations.h, or 2, 4 or 8. Each vector of 64
// codes that dot_shape.h speaks of is there for 16 rows, one after the other.
#pragma once

#include <cstdint>

#include "cpuexec/formats/avx512.h"

namespace hf::cpu {

inline constexpr size_t kPanelRows = 16, kPanelCols = 512;
inline constexpr size_t kMostStepBytes = 1024;  // of a row

struct Panel {
    alignas(64) std::byte codes[kPanelCols / 64][kPanelRows][64];  // [vector][row]
    alignas(64) float scale[8][4][kPanelRows];                     // [unit][term][row]
    alignas(64) float zero[8][4][kPanelRows];
};

/// Whether codes of a panel have signs: none (signed ones are made 128 larger), or as the weights
/// have them, without offset, but not in formats with zeros.
enum class Signs : uint8_t { none, kept };

/// Where 16 rows are, or what is next of them.
using PanelRows = const std::byte* const (&)[kPanelRows];

/// Writes the step at w, which begins with column `column` of rows and with unit `unit` of the
/// panel.
using UnpackPanel = void (*)(PanelRows w, PanelRows rows, size_t column, size_t unit, Panel& panel);

/// What the products with panels ask of a format; the fields are those of dot_shape.h's Shape.
struct PanelShape {
    Prepare prepare;
    size_t lanes, parts;  // of a term's codes
    size_t unit, step;    // columns
    size_t block_weights, block_bytes;
    size_t (*blocks_at)(size_t cols);  // of a row
    UnpackPanel unpack[2];             // by Signs

    size_t step_bytes() const { return step / block_weights * block_bytes; }
    size_t bytes(size_t some) const {  // of columns that begin with a block
        return (some + block_weights - 1) / block_weights * block_bytes;
    }
    /// Where the block that begins with a column lies in a row.
    size_t place(size_t cols, size_t column) const { return blocks_at(cols) + bytes(column); }
};

/// Level amx is worth its set-up from kAmxColumns columns on, a panel from kPanelColumns.
inline constexpr size_t kAmxColumns = kManyColumns, kPanelColumns = 7;

namespace avx512 {

HF_AVX512_INLINE void store_terms(__m512 numbers, float (&to)[4][kPanelRows], size_t rows) {
    _mm_store_ps(to[0] + rows, _mm512_castps512_ps128(numbers));
    _mm_store_ps(to[1] + rows, _mm512_extractf32x4_ps(numbers, 1));
    _mm_store_ps(to[2] + rows, _mm512_extractf32x4_ps(numbers, 2));
    _mm_store_ps(to[3] + rows, _mm512_extractf32x4_ps(numbers, 3));
}

template <class F>
HF_AVX512_INLINE void unpack_scales(PanelRows w, PanelRows rows, size_t column, size_t v,
                                    size_t unit, Panel& p) {
    HF_UNROLL for (size_t r = 0; r < kPanelRows; r += kStreams) {
        const std::byte* const steps[kStreams] = {w[r], w[r + 1], w[r + 2], w[r + 3]};
        const std::byte* const four[kStreams] = {rows[r], rows[r + 1], rows[r + 2], rows[r + 3]};
        Floats scale, zero;
        const Floats row_scales = ScalesOf<F>::rows(four);
        ScalesOf<F>::terms(steps, v, {four, row_scales, column}, scale, zero);
        store_terms(scale.v[0], p.scale[unit], r);
        if constexpr (F::prepare.zeros) store_terms(zero.v[0], p.zero[unit], r);
    }
}

template <class F, Signs signs>
HF_AVX512_INLINE __m512i with_signs(__m512i codes) {
    constexpr bool is_signed = F::code_max == 0;
    constexpr int offset = F::prepare.offset;
    static_assert(is_signed || F::prepare.zeros || (offset <= 128 && F::code_max - offset <= 127));
    if constexpr (signs == Signs::none && is_signed)
        return _mm512_xor_si512(codes, _mm512_set1_epi8(int8_t(0x80)));
    if constexpr (signs == Signs::kept && !is_signed && offset != 0)
        return _mm512_sub_epi8(codes, _mm512_set1_epi8(int8_t(offset)));
    return codes;
}

template <class F, Signs signs>
HF_AVX512 HF_UNCHECKED void unpack_panel(PanelRows w, PanelRows rows, size_t column, size_t unit,
                                         Panel& panel) {
    using S = Shape<F>;
    static_assert(kPanelCols % S::step == 0 && S::step_bytes <= kMostStepBytes);
    HF_UNROLL for (size_t v = 0; v < S::step / S::unit; ++v, ++unit) {
        unpack_scales<F>(w, rows, column, v, unit, panel);
        HF_UNROLL for (size_t k = 0; k < S::lanes; ++k) {
            auto* const vectors = panel.codes + (unit * S::lanes + k) * S::parts;
            for (size_t r = 0; r < kPanelRows; ++r) {
                __m512i codes[S::parts];
                F::unpack(Isa{}, w[r], v, k, 0, codes);
                HF_UNROLL for (size_t m = 0; m < S::parts; ++m) {
                    _mm512_store_si512(vectors[m][r], with_signs<F, signs>(codes[m]));
                }
            }
        }
    }
}

template <class F>
inline constexpr PanelShape kPanelShape = {
    .prepare = F::prepare,
    .lanes = Shape<F>::lanes,
    .parts = Shape<F>::parts,
    .unit = Shape<F>::unit,
    .step = Shape<F>::step,
    .block_weights = F::weights,
    .block_bytes = sizeof(typename F::Block),
    .blocks_at = hf::cpu::blocks_at<F>,
    .unpack = {unpack_panel<F, Signs::none>, unpack_panel<F, Signs::kept>}};

}  // namespace avx512

/// Whether this thread has the memory that products with panels work in: some 550 KiB of the heap,
/// taken by the first call and kept until the thread ends.
bool can_dot_panels();

/// As `Dot`, with VNNI and with AMX. The CPU must have the level, and the thread the memory.
void dot_panels_avx512(const PanelShape& shape, Activations a, const WeightView& W, size_t r0,
                       size_t r1, const Columns& X, float* y, size_t y_stride);
void dot_panels_amx(const PanelShape& shape, Activations a, const WeightView& W, size_t r0,
                    size_t r1, const Columns& X, float* y, size_t y_stride);

}  // namespace hf::cpu
