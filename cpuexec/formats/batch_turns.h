// How many columns meet panels of packed weights: what AMX and VNNI share.
//
// A turn is a term of a panel with a tile of columns. Its exact sums, one for each plane of the
// activations, are put together and added to the term's lane. All of it works on vectors that hold
// a row and its 16 columns, or two rows and their 8 columns.
#pragma once

#include "cpuexec/formats/batch.h"

namespace hf::cpu {

inline constexpr size_t kTileColumns = 16;  // or 8

/// How a format's terms lie in a panel and in packed activations. Packed are 16 columns side by
/// side, plane after plane; or 8 columns and both planes side by side.
struct TermShape {
    size_t quads, parts;  // a term's codes: `parts` runs of `quads` quads
    size_t planes, width;

    size_t quad_bytes() const { return 4 * width * (width < kTileColumns ? planes : 1); }
    size_t plane_bytes() const { return 4 * width * (width < kTileColumns ? 1 : quads); }
    size_t part_bytes() const { return 4 * width * quads * planes; }
    size_t term_bytes() const { return parts * part_bytes(); }
    size_t panel_bytes() const { return kPanelCols * planes * width; }
    size_t vectors() const { return quads / 4 * parts; }  // of a unit of a panel
    /// Where a term of the first unit begins in a panel, 64 bytes from row to row.
    const std::byte* codes(const Panel& panel, size_t term) const {
        return panel.codes[term * quads / 16 * parts][0] + term * quads % 16 * 4;
    }
};

/// d and S of a term for a tile's columns side by side; 8 columns twice.
struct alignas(64) TileScales {
    float d[kTileColumns], s[kTileColumns];
};

/// Of a panel and a tile of columns: [term % 4][vector].
struct alignas(64) TileLanes {
    float v[4][kPanelRows][kTileColumns];
};

/// Asks for the rows that come next, a few lines with each turn: many at once would wait for each
/// other.
struct ReadAhead {
    const std::byte *next, *row_end, *end;
    size_t bytes, row_bytes;  // of a row: asked for, and from row to row
    size_t lines;             // of a turn

    ReadAhead(const std::byte* first, size_t rows, size_t of_row, size_t distance, size_t turns)
        : next(first),
          row_end(first + of_row),
          end(rows ? first + (rows - 1) * distance + of_row : first),
          bytes(of_row),
          row_bytes(distance),
          lines(rows * (of_row / 64 + 1) / turns + 1) {}
    HF_INLINE void turn() {
        for (size_t i = 0; i < lines && next < end; ++i) {
            __builtin_prefetch(next, 0, 2);
            next += 64;
            if (next < row_end) continue;
            next = row_end + row_bytes - bytes;
            row_end += row_bytes;
        }
    }
};

/// What a panel is multiplied with: a tile of packed columns.
struct Tile {
    const TermShape& shape;
    const Panel& panel;
    size_t terms;  // of the panel, those that its rows have
    const std::byte* x;
    const TileScales* scales;
};

namespace avx512 {

/// The numbers of a vector's row, or two.
template <size_t width>
HF_AVX512_INLINE __m512 spread(const float (&rows)[kPanelRows], size_t v) {
    if constexpr (width == kTileColumns) return _mm512_set1_ps(rows[v]);
    return _mm512_mask_broadcastss_ps(_mm512_set1_ps(rows[2 * v]), 0xff00,
                                      _mm_load_ss(&rows[2 * v + 1]));
}

/// The scales of a term, rows and columns.
template <size_t width>
struct Scales {
    const float (&scale)[kPanelRows];
    const float (&zero)[kPanelRows];
    __m512 d, s;

    HF_AVX512_INLINE Scales(const Tile& tile, size_t term)
        : scale(tile.panel.scale[term / 4][term % 4]),
          zero(tile.panel.zero[term / 4][term % 4]),
          d(_mm512_load_ps(tile.scales[term].d)),
          s(_mm512_load_ps(tile.scales[term].s)) {}

    /// Adds exact sums of vector v to its lane.
    template <bool zeros>
    HF_AVX512_INLINE void add(__m512i sum, size_t v, __m512& lane) const {
        if constexpr (zeros) lane = _mm512_fmadd_ps(spread<width>(zero, v), s, lane);
        const __m512 both = _mm512_mul_ps(spread<width>(scale, v), d);
        lane = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), both, lane);
    }
};

}  // namespace avx512
}  // namespace hf::cpu
