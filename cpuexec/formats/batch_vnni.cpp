#include "cpuexec/formats/batch_rows.h"

namespace hf::cpu {
namespace {

constexpr size_t kColumns = 64;      // share an unpacking
constexpr size_t kGroups = 2;        // panels that share a reading of many columns
constexpr size_t kTileColumns = 16;  // at most, of a tile
using Lanes = float[4][kPanelRows];  // of a column and a panel: [term % 4][row]

/// Columns in tiles of one width, so that one set-up serves all. The last tile begins early, and
/// its first columns are summed up twice, to the same bits.
struct Tiles {
    size_t columns, width, count;

    Tiles(size_t all, size_t most)
        : columns(all), width(std::min(all, most)), count((all + width - 1) / width) {}
    size_t first(size_t tile) const { return std::min(tile * width, columns - width); }
};

/// Some panels, and the columns that they meet.
struct Products {
    const Panel* panels;
    size_t count;
    size_t terms;               // of a panel
    const std::byte* x;         // of the first column, where the panels begin
    size_t stride, unit_bytes;  // bytes between columns, and of a unit
    size_t quads, parts;        // a term's codes: `parts` runs of `quads` quads
    size_t scales, sums;        // where these begin in a unit
    Tiles tiles;
    Lanes* lanes;        // of column t of tile i and panel g, at
    size_t panel_lanes;  //     g * panel_lanes + i * tiles.width + t
    ReadAhead* ahead;

    size_t units(size_t term) const { return (terms - term + 3) / 4; }  // that have it
    size_t vector(size_t term) const { return term * quads / 16 * parts; }
    /// Codes of a term of a unit, 1 KiB from part to part.
    const std::byte* codes(const Panel& panel, size_t unit, size_t term) const {
        return panel.codes[unit * quads / 4 * parts + vector(term)][term * quads % 16];
    }
    /// Where its activations lie in a unit, 64 * code_bytes() from part to part.
    size_t column(Activations a, size_t term) const {
        return vector(term) * 64 * code_bytes(a) + term * quads % 16 * 4;
    }
};

/// d and S of a tile's columns side by side, for all rows. [unit][term][column]
struct ColumnScales {
    float d[8][4][kTileColumns], s[8][4][kTileColumns];

    void take(const Products& p, size_t tile) {
        for (size_t t = 0; t < p.tiles.width; ++t) {
            const std::byte* x = p.x + (p.tiles.first(tile) + t) * p.stride;
            for (size_t unit = 0; unit < p.units(0); ++unit, x += p.unit_bytes)
                for (size_t term = 0; term < 4; ++term) {
                    d[unit][term][t] = load<float>(x + p.scales + 16 * term);
                    s[unit][term][t] = load<float>(x + p.sums + 16 * term);
                }
        }
    }
};

/// What the exact sums of a term with a column add to its lane: in formats with zeros, with a fixed
/// offset, with neither.
enum class Kind { zeros, offset, plain };
Kind kind_of(const Prepare& p) {
    return p.zeros ? Kind::zeros : p.offset != 0 ? Kind::offset : Kind::plain;
}

template <Kind kind>
HF_AVX512_INLINE void add_sum_avx512(__m512i sum, __m512 scale, __m512 zero, const float& d,
                                     const float& s, __m512& lane) {
    if constexpr (kind == Kind::zeros) lane = _mm512_fmadd_ps(zero, _mm512_set1_ps(s), lane);
    if constexpr (kind == Kind::offset)
        sum = _mm512_sub_epi32(sum, _mm512_castps_si512(_mm512_set1_ps(s)));
    const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(d));
    lane = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), both, lane);
}

// VNNI: T columns in registers. ------------------------------------------------------------------

/// The exact sums of a term.
template <Activations a, size_t T>
HF_AVX512_INLINE void multiply_term_avx512(const Products& p, const std::byte* codes,
                                           const std::byte* column, __m512i (&sum)[T]) {
    HF_UNROLL for (size_t t = 0; t < T; ++t) sum[t] = _mm512_setzero_si512();
    for (size_t plane = 0; plane < code_bytes(a); ++plane) {
        HF_UNROLL for (size_t t = 0; t < T; ++t) sum[t] = _mm512_slli_epi32(sum[t], 8);
        for (size_t part = 0; part < p.parts; ++part) {
            const std::byte* w = codes + part * sizeof(Panel::codes[0]);
            const std::byte* x = column + part * 64 * code_bytes(a) + 64 * plane;
            for (size_t q = 0; q < p.quads; ++q, w += 64, x += 4) {
                const __m512i quad = _mm512_load_si512(w);
                HF_UNROLL for (size_t t = 0; t < T; ++t) {
                    const auto four = load<int32_t>(x + t * p.stride);
                    sum[t] = _mm512_dpbusd_epi32(sum[t], quad, _mm512_set1_epi32(four));
                }
            }
        }
    }
}

/// What the terms of one lane add to it.
template <Activations a, Kind kind, size_t T>
HF_AVX512_INLINE void add_lane_avx512(const Products& p, const Panel& panel, size_t term,
                                      const std::byte* column, const ColumnScales& scales,
                                      ReadAhead& ahead, Lanes* lanes) {
    __m512 lane[T];
    HF_UNROLL for (size_t t = 0; t < T; ++t) lane[t] = _mm512_load_ps(lanes[t][term]);
    const size_t units = p.units(term);
    column += p.column(a, term);
    for (size_t unit = 0; unit < units; ++unit, column += p.unit_bytes) {
        __m512i sum[T];
        ahead.turn();
        multiply_term_avx512<a>(p, p.codes(panel, unit, term), column, sum);
        const __m512 scale = _mm512_load_ps(panel.scale[unit][term]);
        const __m512 zero = _mm512_load_ps(panel.zero[unit][term]);
        HF_UNROLL for (size_t t = 0; t < T; ++t) {
            add_sum_avx512<kind>(sum[t], scale, zero, scales.d[unit][term][t],
                                 scales.s[unit][term][t], lane[t]);
        }
    }
    HF_UNROLL for (size_t t = 0; t < T; ++t) _mm512_store_ps(lanes[t][term], lane[t]);
}

struct Vnni {
    explicit Vnni(const Products&) {}
    static constexpr size_t most = 8;  // columns of a tile

    template <Activations a, Kind kind, size_t T>
    HF_AVX512 HF_UNCHECKED static void add_columns_avx512(const Products& given) {
        const Products p = given;  // what lies behind a reference is read again after each store
        ReadAhead ahead = *p.ahead;
        ColumnScales scales;
        for (size_t i = 0; i < p.tiles.count; ++i) {
            scales.take(p, i);
            for (size_t g = 0; g < p.count; ++g)
                for (size_t term = 0; term < std::min<size_t>(p.terms, 4); ++term)
                    add_lane_avx512<a, kind, T>(p, p.panels[g], term,
                                                p.x + p.tiles.first(i) * p.stride, scales, ahead,
                                                p.lanes + g * p.panel_lanes + i * T);
        }
        *p.ahead = ahead;
    }

    template <Activations a, Kind kind>
    static void add(const Products& p) {
        using Add = void (*)(const Products&);
        constexpr Add kAdd[most] = {add_columns_avx512<a, kind, 1>, add_columns_avx512<a, kind, 2>,
                                    add_columns_avx512<a, kind, 3>, add_columns_avx512<a, kind, 4>,
                                    add_columns_avx512<a, kind, 5>, add_columns_avx512<a, kind, 6>,
                                    add_columns_avx512<a, kind, 7>, add_columns_avx512<a, kind, 8>};
        kAdd[p.tiles.width - 1](p);
    }
};

// Both. ------------------------------------------------------------------------------------------

/// The sums of n rows with a column.
void fold_lanes(const Lanes& lanes, size_t n, float* y) {
    for (size_t r = 0; r < n; ++r) y[r] = (lanes[0][r] + lanes[2][r]) + (lanes[1][r] + lanes[3][r]);
}

/// Rows [r0, r1), at most kGroups panels.
template <class Kernel, Activations a, Kind kind>
void dot_rows(const PanelShape& shape, const WeightView& W, size_t r0, size_t r1, Products p,
              float* y, size_t y_stride) {
    alignas(64) Panel panels[kGroups];
    alignas(64) Lanes lanes[kGroups][kColumns + Kernel::most];
    PanelRows rows[kGroups];
    p.panels = panels;
    p.count = (r1 - r0 + kPanelRows - 1) / kPanelRows;
    p.lanes = lanes[0];
    p.panel_lanes = sizeof(lanes[0]) / sizeof(Lanes);
    for (size_t g = 0; g < p.count; ++g) {
        rows[g].begin(W, r0 + g * kPanelRows, r1);
        std::memset(lanes[g], 0, p.tiles.count * p.tiles.width * sizeof(Lanes));
    }
    for (size_t first = 0; first < W.cols; first += kPanelCols) {
        const size_t cols = std::min(W.cols - first, kPanelCols);
        for (size_t g = 0; g < p.count; ++g)
            unpack_panel(shape, shape.unpack_quads, cols, rows[g], panels[g]);
        p.terms = (cols + shape.prepare.term - 1) / shape.prepare.term;
        Kernel::template add<a, kind>(p);
        p.x += kPanelCols / shape.unit * p.unit_bytes;
    }
    for (size_t g = 0; g < p.count; ++g)
        for (size_t i = 0; i < p.tiles.count * p.tiles.width; ++i) {
            const size_t t = p.tiles.first(i / p.tiles.width) + i % p.tiles.width;
            const size_t r = g * kPanelRows;
            fold_lanes(lanes[g][i], std::min(kPanelRows, r1 - r0 - r), y + t * y_stride + r);
        }
}

template <class Kernel, Activations a, Kind kind>
void dot_columns(const PanelShape& shape, const WeightView& W, size_t r0, size_t r1,
                 const Columns& X, float* y, size_t y_stride) {
    Products p{.panels = nullptr,
               .count = 0,
               .terms = 0,
               .x = reinterpret_cast<const std::byte*>(X.data),
               .stride = X.stride * sizeof(float),
               .unit_bytes = unit_bytes(shape.prepare, a),
               .quads = 4 * shape.lanes,
               .parts = shape.parts,
               .scales = scales_at(shape.prepare, a),
               .sums = sums_at(shape.prepare, a),
               .tiles = Tiles(X.count, Kernel::most),
               .lanes = nullptr,
               .panel_lanes = 0,
               .ahead = nullptr};
    const Kernel kernel(p);
    const size_t terms = (W.cols + shape.prepare.term - 1) / shape.prepare.term;
    const size_t panels = X.count > kTileColumns ? kGroups : 1, rows = panels * kPanelRows;
    for (size_t r = r0; r < r1; r += rows) {
        const size_t end = std::min(r + rows, r1);
        ReadAhead ahead(W.base + end * W.row_bytes, std::min(end + rows, r1) - end, W.row_bytes,
                        W.row_bytes, terms * panels * p.tiles.count);
        p.ahead = &ahead;
        dot_rows<Kernel, a, kind>(shape, W, r, end, p, y + (r - r0), y_stride);
    }
}

template <class Kernel, Activations a>
auto dot_of(Kind kind) {
    if (kind == Kind::zeros) return dot_columns<Kernel, a, Kind::zeros>;
    return kind == Kind::offset ? dot_columns<Kernel, a, Kind::offset>
                                : dot_columns<Kernel, a, Kind::plain>;
}

template <class Kernel>
void dot_panels(const PanelShape& shape, Activations a, const WeightView& W, size_t r0, size_t r1,
                const Columns& X, float* y, size_t y_stride) {
    const Kind kind = kind_of(shape.prepare);
    const auto dot = a == Activations::i16 ? dot_of<Kernel, Activations::i16>(kind)
                                           : dot_of<Kernel, Activations::int8>(kind);
    for (size_t t = 0; t < X.count; t += kColumns)
        dot(shape, W, r0, r1, {X.data + t * X.stride, X.stride, std::min(kColumns, X.count - t)},
            y + t * y_stride, y_stride);
}

}  // namespace

void dot_panels_avx512(const PanelShape& shape, Activations a, const WeightView& W, size_t r0,
                       size_t r1, const Columns& X, float* y, size_t y_stride) {
    dot_panels<Vnni>(shape, a, W, r0, r1, X, y, y_stride);
}

}  // namespace hf::cpu
