// The walk over panels and columns, whatever multiplies them.
#include "cpuexec/formats/batch.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "cpuexec/formats/batch_amx.h"
#include "cpuexec/formats/batch_avx512.h"

namespace hf::cpu {
namespace {

constexpr size_t kColumns = 64;  // share an unpacking
constexpr size_t kMostTiles = kColumns / kTileColumns;
constexpr size_t kPackedBytes = 256 << 10, kPackedPanels = 32;  // of activations, at once
constexpr size_t kTermsOfPanel = 32;                            // at most

// Activations. -----------------------------------------------------------------------------------

/// Four quads of 16 rows side by side. Lane l of part[r]: the quads of row 4 l + r.
HF_AVX512_INLINE void transpose_quads(const __m512i (&part)[4], __m512i (&quads)[4]) {
    const __m512i a = _mm512_unpacklo_epi32(part[0], part[1]);
    const __m512i b = _mm512_unpackhi_epi32(part[0], part[1]);
    const __m512i c = _mm512_unpacklo_epi32(part[2], part[3]);
    const __m512i d = _mm512_unpackhi_epi32(part[2], part[3]);
    quads[0] = _mm512_unpacklo_epi64(a, c), quads[1] = _mm512_unpackhi_epi64(a, c);
    quads[2] = _mm512_unpacklo_epi64(b, d), quads[3] = _mm512_unpackhi_epi64(b, d);
}

/// 16 bytes from each of 16 places, as four quads of all.
HF_AVX512_INLINE void load_quads(const std::byte* const (&from)[16], size_t at,
                                 __m512i (&quads)[4]) {
    __m512i part[4];
    HF_UNROLL for (size_t r = 0; r < 4; ++r) part[r] =
        avx512::load_four(from[r] + at, from[4 + r] + at, from[8 + r] + at, from[12 + r] + at);
    transpose_quads(part, quads);
}

/// Where the pieces of a unit, 16 bytes of codes each, go from: its terms' begin.
struct Places {
    size_t count = 0;
    uint32_t at[64];

    explicit Places(const TermShape& shape) {
        for (size_t v = 0; v < shape.vectors(); ++v)
            for (size_t plane = 0; plane < shape.planes; ++plane)
                for (size_t code = 0; code < 16; code += 4)  // quads of the vector
                    at[count++] = uint32_t(
                        (v / shape.parts * 16 + code) / shape.quads * shape.term_bytes() +
                        v % shape.parts * shape.part_bytes() + plane * shape.plane_bytes() +
                        code % shape.quads * shape.quad_bytes());
    }
};

/// Packs units, [unit][term][part][plane][quad][column][4], of 16 columns; where 8 are wanted, they
/// are there twice.
template <size_t width>
HF_AVX512 HF_UNCHECKED void pack_units_avx512(const TermShape& shape, const Places& places,
                                              const std::byte* const (&columns)[16], size_t units,
                                              size_t unit_bytes, std::byte* to,
                                              TileScales* scales) {
    __m512i quads[4];
    size_t at = 0;
    for (size_t unit = 0; unit < units; ++unit, to += 4 * shape.term_bytes(), scales += 4) {
        at = unit * unit_bytes;
        for (size_t i = 0; i < places.count; ++i, at += 16) {
            load_quads(columns, at, quads);
            HF_UNROLL for (size_t q = 0; q < 4; ++q) {
                std::byte* out = to + places.at[i] + q * shape.quad_bytes();
                if constexpr (width == 8)
                    _mm256_store_si256(reinterpret_cast<__m256i*>(out),
                                       _mm512_castsi512_si256(quads[q]));
                else
                    _mm512_store_si512(out, quads[q]);
            }
        }
        for (size_t term = 0; term < 4; ++term, at += 16) {  // each number is there four times
            load_quads(columns, at, quads);
            _mm512_store_si512(scales[term].d, quads[0]);
            load_quads(columns, at + 64, quads);
            _mm512_store_si512(scales[term].s, quads[0]);
        }
    }
}

// Rows. ------------------------------------------------------------------------------------------

/// 16 rows, from row r and column `column` on; behind r1 the last one is repeated.
struct Walk {
    const std::byte *rows[kPanelRows], *at[kPanelRows];
    size_t column;
    std::byte ends[kPanelRows][kMostStepBytes];

    void begin(const PanelShape& shape, const WeightView& W, size_t r, size_t r1, size_t first) {
        column = first;
        for (size_t i = 0; i < kPanelRows; ++i) {
            rows[i] = W.base + std::min(r + i, r1 - 1) * W.row_bytes;
            at[i] = rows[i] + shape.place(W.cols, column);
        }
    }
    void advance(const PanelShape& shape) {
        for (const std::byte*& step : at) step += shape.step_bytes();
        column += shape.step;
    }
    /// Copies a row's end, less than a step, since nothing behind it may be read.
    void copy_ends(const PanelShape& shape, size_t cols) {
        const size_t bytes = shape.bytes(cols);
        for (size_t i = 0; i < kPanelRows; ++i) {
            std::memcpy(ends[i], at[i], bytes);
            std::memset(ends[i] + bytes, 0, shape.step_bytes() - bytes);
            at[i] = ends[i];
        }
    }
};

/// Columns [0, cols) of what is left of 16 rows, a panel's worth at most.
void unpack_panel(const PanelShape& shape, Signs signs, size_t cols, Walk& walk, Panel& panel) {
    for (size_t unit = 0; cols > 0; unit += shape.step / shape.unit) {
        if (cols < shape.step) walk.copy_ends(shape, cols);
        shape.unpack[size_t(signs)](walk.at, walk.rows, walk.column, unit, panel);
        walk.advance(shape);
        cols -= std::min(cols, shape.step);
    }
}

/// Sums of n rows and `columns` columns from their lanes.
template <size_t width>
HF_AVX512 HF_UNCHECKED void fold_avx512(const TileLanes& lanes, size_t n, size_t columns, float* y,
                                        size_t y_stride) {
    alignas(64) float sums[kPanelRows * width];  // [row][column]
    HF_UNROLL for (size_t v = 0; v < width; ++v) {
        const __m512 even =
            _mm512_add_ps(_mm512_load_ps(lanes.v[0][v]), _mm512_load_ps(lanes.v[2][v]));
        const __m512 odd =
            _mm512_add_ps(_mm512_load_ps(lanes.v[1][v]), _mm512_load_ps(lanes.v[3][v]));
        _mm512_store_ps(sums + 16 * v, _mm512_add_ps(even, odd));
    }
    const std::byte* rows[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r)
        rows[r] = reinterpret_cast<const std::byte*>(sums + r * width);
    for (size_t t = 0; t < columns; t += 4) {
        __m512i quads[4];
        load_quads(rows, t * sizeof(float), quads);
        for (size_t q = 0; q < std::min<size_t>(columns - t, 4); ++q)
            _mm512_mask_storeu_epi32(y + (t + q) * y_stride, __mmask16((1u << n) - 1), quads[q]);
    }
}

// Calls. -----------------------------------------------------------------------------------------

/// What is kept between the steps of a call: too much for the stacks that some threads have.
struct Scratch {
    alignas(64) std::byte codes[kPackedBytes];
    TileScales scales[kPackedPanels][kTermsOfPanel];
    TileLanes lanes[kManyRows / kPanelRows][kMostTiles];
    Panel panel;
    Walk walk;
};

/// This thread's, until it ends; null where there is no memory.
Scratch* scratch() {
    thread_local const std::unique_ptr<Scratch> own(new (std::nothrow) Scratch);
    return own.get();
}

/// Columns that all share a reading of the rows, but for rows that are cut into stretches.
template <template <Activations, bool, size_t> class Turns, Activations a, bool zeros, size_t width>
struct Call {
    const PanelShape& shape;
    const WeightView& W;
    const Columns& X;
    const TermShape terms{4 * shape.lanes, shape.parts, code_bytes(a), width};
    const size_t tiles = (X.count + width - 1) / width;
    const size_t unit_cols = cpu::unit_cols(shape.prepare);
    const size_t most = std::min(kPackedBytes / terms.panel_bytes(), kPackedPanels) / tiles;
    const size_t stretch = most * kPanelCols;  // columns that are packed at once

    size_t terms_of(size_t cols) const {
        return (cols + shape.prepare.term - 1) / shape.prepare.term;
    }

    /// Columns [first, end).
    void pack(size_t first, size_t end, Scratch& to) const {
        const size_t unit_bytes = cpu::unit_bytes(shape.prepare, a);
        const Places places(terms);
        for (size_t c = first, block = 0; c < end; c += kPanelCols)
            for (size_t i = 0; i < tiles; ++i, ++block) {
                const std::byte* columns[16];
                for (size_t t = 0; t < 16; ++t) {
                    const size_t column = std::min(i * width + t % width, X.count - 1);
                    columns[t] = reinterpret_cast<const std::byte*>(X.data + column * X.stride) +
                                 c / unit_cols * unit_bytes;
                }
                const size_t cols = std::min(end - c, kPanelCols);
                const size_t units = (cols + unit_cols - 1) / unit_cols;
                pack_units_avx512<width>(terms, places, columns, units, unit_bytes,
                                         to.codes + block * terms.panel_bytes(), to.scales[block]);
            }
    }

    /// Columns [first, end) of 16 rows from r on, and what comes next while they are multiplied.
    void multiply(size_t r, size_t r1, size_t first, size_t end, Scratch& s,
                  TileLanes (&lanes)[kMostTiles]) const {
        const size_t next = std::min(r + kPanelRows, W.rows),
                     after = std::min(next + kPanelRows, W.rows);
        ReadAhead ahead(W.base + next * W.row_bytes + shape.place(W.cols, first), after - next,
                        shape.bytes(end - first), W.row_bytes, tiles * terms_of(end - first));
        s.walk.begin(shape, W, r, r1, first);
        for (size_t c = first, block = 0; c < end; c += kPanelCols) {
            const size_t cols = std::min(end - c, kPanelCols);
            unpack_panel(shape, Turns<a, zeros, width>::signs, cols, s.walk, s.panel);
            for (size_t i = 0; i < tiles; ++i, ++block)
                Turns<a, zeros, width>::run(
                    {terms, s.panel, terms_of(cols), s.codes + block * terms.panel_bytes(),
                     s.scales[block]},
                    lanes[i], ahead);
        }
    }

    void fold(const TileLanes (&lanes)[kMostTiles], size_t n, float* y, size_t y_stride) const {
        for (size_t i = 0; i < tiles; ++i)
            fold_avx512<width>(lanes[i], n, std::min(width, X.count - i * width),
                               y + i * width * y_stride, y_stride);
    }

    void run(size_t r0, size_t r1, float* y, size_t y_stride) const {
        Scratch& s = *scratch();
        const typename Turns<a, zeros, width>::Setup setup(terms);
        const size_t rows = stretch < W.cols ? kManyRows : r1 - r0;
        for (size_t begin = r0; begin < r1; begin += rows)
            for (size_t first = 0; first < W.cols; first += stretch) {
                const size_t end = std::min(first + stretch, W.cols),
                             rows_end = std::min(begin + rows, r1);
                if (begin == r0 || stretch < W.cols) pack(first, end, s);
                for (size_t r = begin; r < rows_end; r += kPanelRows) {
                    auto& lanes = s.lanes[(r - begin) % kManyRows / kPanelRows];
                    if (first == 0) std::memset(lanes, 0, tiles * sizeof(TileLanes));
                    multiply(r, rows_end, first, end, s, lanes);
                    if (end == W.cols)
                        fold(lanes, std::min(kPanelRows, rows_end - r), y + (r - r0), y_stride);
                }
            }
    }
};

template <template <Activations, bool, size_t> class Turns, Activations a, bool zeros>
void dot_columns(const PanelShape& shape, const WeightView& W, size_t r0, size_t r1,
                 const Columns& X, float* y, size_t y_stride) {
    if (X.count <= 8)
        Call<Turns, a, zeros, 8>{shape, W, X}.run(r0, r1, y, y_stride);
    else
        Call<Turns, a, zeros, kTileColumns>{shape, W, X}.run(r0, r1, y, y_stride);
}

template <template <Activations, bool, size_t> class Turns>
void dot_panels(const PanelShape& shape, Activations a, const WeightView& W, size_t r0, size_t r1,
                const Columns& X, float* y, size_t y_stride) {
    constexpr decltype(&dot_columns<Turns, Activations::i16, false>) kDots[2][2] = {
        {dot_columns<Turns, Activations::i16, false>, dot_columns<Turns, Activations::i16, true>},
        {dot_columns<Turns, Activations::int8, false>,
         dot_columns<Turns, Activations::int8, true>}};
    const auto dot = kDots[a == Activations::int8][shape.prepare.zeros];
    for (size_t t = 0; t < X.count; t += kColumns)
        dot(shape, W, r0, r1, {X.data + t * X.stride, X.stride, std::min(kColumns, X.count - t)},
            y + t * y_stride, y_stride);
}

}  // namespace

bool can_dot_panels() {
    return scratch() != nullptr;
}

void dot_panels_avx512(const PanelShape& shape, Activations a, const WeightView& W, size_t r0,
                       size_t r1, const Columns& X, float* y, size_t y_stride) {
    dot_panels<Avx512Turns>(shape, a, W, r0, r1, X, y, y_stride);
}

void dot_panels_amx(const PanelShape& shape, Activations a, const WeightView& W, size_t r0,
                    size_t r1, const Columns& X, float* y, size_t y_stride) {
    dot_panels<AmxTurns>(shape, a, W, r0, r1, X, y, y_stride);
}

}  // namespace hf::cpu
