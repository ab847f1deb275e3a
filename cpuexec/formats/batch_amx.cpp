// Many columns with AMX: a tile of weights, 16 rows as they are unpacked, meets a tile of
// activations, the quads of 8 or 16 columns side by side. So activations are repacked, once for all
// rows of a call, and weights need not be transposed.
//
// A turn is a term of a panel with a tile of columns. Its exact sums, one tile for each plane of
// the activations, are stored, put together and added to the lanes, where a vector holds a row and
// its 16 columns, or two rows and their 8 columns.
#include "cpuexec/formats/batch_rows.h"

namespace hf::cpu {
namespace {

constexpr size_t kColumns = 64;                      // share an unpacking
constexpr size_t kTileRows = 16, kTileColumns = 16;  // of sums; or 8 columns
constexpr size_t kMostTiles = kColumns / kTileColumns;
constexpr size_t kRowsAtOnce = 128;                             // where a row is cut into stretches
constexpr size_t kPackedBytes = 256 << 10, kPackedPanels = 32;  // of a stretch's activations
constexpr size_t kTermsOfPanel = 32;                            // at most

#define HF_TARGET_AMX HF_TARGET_AVX512 ",amx-tile,amx-int8"
#define HF_AMX HF_UNCHECKED __attribute__((target(HF_TARGET_AMX)))
#define HF_AMX_INLINE HF_UNCHECKED __attribute__((target(HF_TARGET_AMX), always_inline)) inline

/// d and S of a term for a tile's columns side by side; 8 columns twice.
struct alignas(64) TermScales {
    float d[kTileColumns], s[kTileColumns];
};

/// Of a panel and a tile of columns: [term % 4][vector].
struct alignas(64) Lanes {
    float v[4][kTileRows][kTileColumns];
};

/// What is kept between the steps of a call.
struct Scratch {
    alignas(64) std::byte codes[kPackedBytes];
    TermScales scales[kPackedPanels][kTermsOfPanel];
    Lanes lanes[kRowsAtOnce / kPanelRows][kMostTiles];
    Panel panel;
    PanelRows rows;
};

/// How a format's terms lie in a panel and in packed activations.
struct TermShape {
    size_t quads, parts;  // a term's codes: `parts` runs of `quads` quads
    size_t planes, width;

    size_t run_bytes() const { return quads * width * 4; }  // of a part and a plane
    size_t term_bytes() const { return parts * planes * run_bytes(); }
    size_t packed_bytes() const { return kPanelCols * planes * width; }  // of a panel and a tile
    /// Vectors of the panel before a term of a unit, and from unit to unit.
    size_t vector(size_t term) const { return term * quads / 16 * parts; }
    size_t vectors() const { return quads / 4 * parts; }
};

// Activations. -----------------------------------------------------------------------------------

/// 16 bytes from each of 16 places, as four quads of all.
HF_AVX512_INLINE void load_quads(const std::byte* const (&from)[16], size_t at,
                                 __m512i (&quads)[4]) {
    __m512i part[4];
    HF_UNROLL for (size_t r = 0; r < 4; ++r) part[r] =
        avx512::load_four(from[r] + at, from[4 + r] + at, from[8 + r] + at, from[12 + r] + at);
    avx512::transpose_quads(part, quads);
}

/// Where the pieces of a unit, 16 bytes of codes each, go from: its terms' begin.
struct Places {
    size_t count = 0;
    uint32_t at[64];

    explicit Places(const TermShape& shape) {
        for (size_t v = 0; v < shape.vectors(); ++v)
            for (size_t plane = 0; plane < shape.planes; ++plane)
                for (size_t code = 0; code < 16; code += 4)  // quads of the vector
                    at[count++] =
                        uint32_t((v / shape.parts * 16 + code) / shape.quads * shape.term_bytes() +
                                 (v % shape.parts * shape.planes + plane) * shape.run_bytes() +
                                 code % shape.quads * shape.width * 4);
    }
};

/// Packs units, [unit][term][part][plane][quad][column][4], of 16 columns; where 8 are wanted, they
/// are there twice.
template <size_t width>
HF_AVX512 HF_UNCHECKED void pack_units_avx512(const TermShape& shape, const Places& places,
                                              const std::byte* const (&columns)[16], size_t units,
                                              size_t unit_bytes, std::byte* to,
                                              TermScales* scales) {
    __m512i quads[4];
    size_t at = 0;
    for (size_t unit = 0; unit < units; ++unit, to += 4 * shape.term_bytes(), scales += 4) {
        at = unit * unit_bytes;
        for (size_t i = 0; i < places.count; ++i, at += 16) {
            load_quads(columns, at, quads);
            HF_UNROLL for (size_t q = 0; q < 4; ++q) {
                std::byte* out = to + places.at[i] + q * width * 4;
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

// Products. --------------------------------------------------------------------------------------

/// Rows and bytes of a row of the eight tiles (Intel SDM volume 1, 18.2).
struct alignas(64) TileConfig {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
};

/// Tiles 0 .. 3: sums (16 rows, columns), high and low plane, of two turns. 4, 5: activations
/// (quads, columns). 6: weights (16 rows, codes of a term's part).
class Tiles {
  public:
    HF_AMX explicit Tiles(const TermShape& terms) {
        TileConfig config;
        for (size_t tile = 0; tile < 6; ++tile) {
            config.rows[tile] = uint8_t(tile < 4 ? kTileRows : terms.quads);
            config.row_bytes[tile] = uint16_t(4 * terms.width);
        }
        config.rows[6] = kTileRows;
        config.row_bytes[6] = uint16_t(4 * terms.quads);
        asm volatile("" : : "r"(&config) : "memory");  // GCC 12 would store behind the next line
        _tile_loadconfig(&config);
    }
    HF_AMX ~Tiles() { _tile_release(); }
    Tiles(const Tiles&) = delete;
};

/// Multiplies the terms of a panel with a tile of columns.
///
/// Tiles are worked on in the order of the program: a store right behind the multiplications that
/// it waits for holds up all that follow. So a turn is multiplied while the one before it is stored
/// and the one before that is added.
template <Activations a, bool zeros, size_t width>
struct Turns {
    static constexpr bool two = a == Activations::i16;
    using Sums = int32_t[1 + two][kTileRows * width];  // [plane][row][column]

    const TermShape& terms;
    const Panel& panel;
    const TermScales* scales;
    size_t count;  // terms

// A tile is part of an instruction's name, so sums that lie in different ones need code of their
// own.
#define HF_MULTIPLY(name, high, low)                                                     \
    HF_AMX_INLINE static void name(const std::byte* w, const std::byte* x, size_t parts, \
                                   size_t run) {                                         \
        _tile_zero(high);                                                                \
        if constexpr (two) _tile_zero(low);                                              \
        for (; parts > 0; --parts, w += sizeof(Panel::codes[0]), x += (1 + two) * run) { \
            _tile_loadd(6, w, 64);                                                       \
            _tile_loadd(4, x, 4 * width);                                                \
            HF_TILE_DOT(high, 6, 4);                                                     \
            if constexpr (two) {                                                         \
                _tile_loadd(5, x + run, 4 * width);                                      \
                HF_TILE_DOT(low, 6, 5);                                                  \
            }                                                                            \
        }                                                                                \
    }
#define HF_TILE_DOT(sum, w, x)   \
    if constexpr (zeros)         \
        _tile_dpbusd(sum, w, x); \
    else                         \
        _tile_dpbssd(sum, w, x)
    HF_MULTIPLY(multiply_even, 0, 1)
    HF_MULTIPLY(multiply_odd, 2, 3)
#undef HF_TILE_DOT
#undef HF_MULTIPLY

    HF_AMX_INLINE static void store(size_t n, Sums& sums) {
        if (n % 2 == 0) {
            _tile_stored(0, sums[0], 4 * width);
            if constexpr (two) _tile_stored(1, sums[1], 4 * width);
        } else {
            _tile_stored(2, sums[0], 4 * width);
            if constexpr (two) _tile_stored(3, sums[1], 4 * width);
        }
    }

    /// Of a vector's row, or two.
    HF_AMX_INLINE static __m512 spread(const float (&rows)[kPanelRows], size_t v) {
        if constexpr (width == 16) return _mm512_set1_ps(rows[v]);
        return _mm512_mask_broadcastss_ps(_mm512_set1_ps(rows[2 * v]), 0xff00,
                                          _mm_load_ss(&rows[2 * v + 1]));
    }

    /// Adds the sums of term `term` to its lane, which stays in registers from first to last.
    HF_AMX_INLINE void add(size_t term, const Sums& sums, Lanes& lanes,
                           __m512 (&lane)[width]) const {
        const auto& scale = panel.scale[term / 4][term % 4];
        const auto& zero = panel.zero[term / 4][term % 4];
        const __m512 d = _mm512_load_ps(scales[term].d), s = _mm512_load_ps(scales[term].s);
        if (term < 4) {
            HF_UNROLL for (size_t v = 0; v < width; ++v) lane[v] = _mm512_load_ps(lanes.v[term][v]);
        }
        HF_UNROLL for (size_t v = 0; v < width; ++v) {
            __m512i sum = _mm512_load_si512(&sums[0][16 * v]);
            if constexpr (two)
                sum = _mm512_add_epi32(_mm512_slli_epi32(sum, 8),
                                       _mm512_load_si512(&sums[1][16 * v]));
            if constexpr (zeros) lane[v] = _mm512_fmadd_ps(spread(zero, v), s, lane[v]);
            lane[v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(spread(scale, v), d),
                                      lane[v]);
        }
        if (term + 4 >= count) {
            HF_UNROLL for (size_t v = 0; v < width; ++v)
                _mm512_store_ps(lanes.v[term % 4][v], lane[v]);
        }
    }

    HF_AMX void run(const std::byte* x, Lanes& lanes, ReadAhead& given) const {
        alignas(64) Sums sums[2];
        __m512 lane[width];
        ReadAhead ahead = given;
        const size_t parts = terms.parts, run = terms.run_bytes(), term_bytes = terms.term_bytes();
        const size_t unit_codes = terms.vectors() * sizeof(Panel::codes[0]);
        size_t n = 0, before = 0, current = 0;
        for (size_t first = 0; first < std::min<size_t>(count, 4); ++first) {
            const std::byte* w = panel.codes[terms.vector(first)][0] + first * terms.quads % 16 * 4;
            const std::byte* at = x + first * term_bytes;
            for (size_t term = first; term < count; term += 4, ++n) {
                if (n % 2 == 0)
                    multiply_even(w, at, parts, run);
                else
                    multiply_odd(w, at, parts, run);
                if (n >= 1) store(n - 1, sums[(n - 1) % 2]);
                if (n >= 2) add(before, sums[n % 2], lanes, lane);
                ahead.turn();
                before = current, current = term;
                w += unit_codes, at += 4 * term_bytes;
            }
        }
        store(n - 1, sums[(n - 1) % 2]);
        if (n >= 2) add(before, sums[n % 2], lanes, lane);
        add(current, sums[(n - 1) % 2], lanes, lane);
        given = ahead;
    }
};

/// Sums of n rows and `columns` columns from their lanes.
template <size_t width>
HF_AVX512 HF_UNCHECKED void fold_avx512(const Lanes& lanes, size_t n, size_t columns, float* y,
                                        size_t y_stride) {
    alignas(64) float sums[kTileRows * width];  // [row][column]
    HF_UNROLL for (size_t v = 0; v < width; ++v) {
        const __m512 even =
            _mm512_add_ps(_mm512_load_ps(lanes.v[0][v]), _mm512_load_ps(lanes.v[2][v]));
        const __m512 odd =
            _mm512_add_ps(_mm512_load_ps(lanes.v[1][v]), _mm512_load_ps(lanes.v[3][v]));
        _mm512_store_ps(sums + 16 * v, _mm512_add_ps(even, odd));
    }
    const std::byte* rows[kTileRows];
    for (size_t r = 0; r < kTileRows; ++r)
        rows[r] = reinterpret_cast<const std::byte*>(sums + r * width);
    for (size_t t = 0; t < columns; t += 4) {
        __m512i quads[4];
        load_quads(rows, t * sizeof(float), quads);
        for (size_t q = 0; q < std::min<size_t>(columns - t, 4); ++q)
            _mm512_mask_storeu_epi32(y + (t + q) * y_stride, __mmask16((1u << n) - 1), quads[q]);
    }
}

// Rows. ------------------------------------------------------------------------------------------

template <Activations a, bool zeros, size_t width>
struct Call {
    const PanelShape& shape;
    const WeightView& W;
    const Columns& X;
    const TermShape terms{4 * shape.lanes, shape.parts, code_bytes(a), width};
    const size_t tiles = (X.count + width - 1) / width;
    const size_t unit_cols = cpu::unit_cols(shape.prepare);
    const size_t most = std::min(kPackedBytes / terms.packed_bytes(), kPackedPanels) / tiles;
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
                                         to.codes + block * terms.packed_bytes(), to.scales[block]);
            }
    }

    /// Columns [first, end) of 16 rows from r on, and what comes next while they are multiplied.
    void multiply(size_t r, size_t r1, size_t first, size_t end, Scratch& s,
                  Lanes (&lanes)[kMostTiles]) const {
        const size_t skipped = first / shape.block_weights * shape.block_bytes;
        const size_t bytes =
            (end - first + shape.block_weights - 1) / shape.block_weights * shape.block_bytes;
        const size_t next = std::min(r + kPanelRows, W.rows),
                     after = std::min(next + kPanelRows, W.rows);
        ReadAhead ahead(W.base + next * W.row_bytes + skipped, after - next, bytes, W.row_bytes,
                        tiles * terms_of(end - first));
        s.rows.begin(W, r, r1);
        s.rows.advance(skipped);
        for (size_t c = first, block = 0; c < end; c += kPanelCols) {
            const size_t cols = std::min(end - c, kPanelCols);
            unpack_panel(shape, shape.unpack_rows, cols, s.rows, s.panel);
            for (size_t i = 0; i < tiles; ++i, ++block)
                Turns<a, zeros, width>{terms, s.panel, s.scales[block], terms_of(cols)}.run(
                    s.codes + block * terms.packed_bytes(), lanes[i], ahead);
        }
    }

    void fold(const Lanes (&lanes)[kMostTiles], size_t n, float* y, size_t y_stride) const {
        for (size_t i = 0; i < tiles; ++i)
            fold_avx512<width>(lanes[i], n, std::min(width, X.count - i * width),
                               y + i * width * y_stride, y_stride);
    }

    void run(size_t r0, size_t r1, float* y, size_t y_stride) const {
        Scratch s;
        const Tiles tile_registers(terms);
        const size_t rows = stretch < W.cols ? kRowsAtOnce : r1 - r0;
        for (size_t begin = r0; begin < r1; begin += rows)
            for (size_t first = 0; first < W.cols; first += stretch) {
                const size_t end = std::min(first + stretch, W.cols),
                             rows_end = std::min(begin + rows, r1);
                if (begin == r0 || stretch < W.cols) pack(first, end, s);
                for (size_t r = begin; r < rows_end; r += kPanelRows) {
                    auto& lanes = s.lanes[(r - begin) % kRowsAtOnce / kPanelRows];
                    if (first == 0) std::memset(lanes, 0, tiles * sizeof(Lanes));
                    multiply(r, rows_end, first, end, s, lanes);
                    if (end == W.cols)
                        fold(lanes, std::min(kPanelRows, rows_end - r), y + (r - r0), y_stride);
                }
            }
    }
};

template <Activations a, bool zeros>
void dot_columns(const PanelShape& shape, const WeightView& W, size_t r0, size_t r1,
                 const Columns& X, float* y, size_t y_stride) {
    if (X.count <= 8)
        Call<a, zeros, 8>{shape, W, X}.run(r0, r1, y, y_stride);
    else
        Call<a, zeros, 16>{shape, W, X}.run(r0, r1, y, y_stride);
}

}  // namespace

void dot_panels_amx(const PanelShape& shape, Activations a, const WeightView& W, size_t r0,
                    size_t r1, const Columns& X, float* y, size_t y_stride) {
    const bool zeros = shape.prepare.zeros;
    const auto dot = a == Activations::i16 ? zeros ? dot_columns<Activations::i16, true>
                                                   : dot_columns<Activations::i16, false>
                     : zeros ? dot_columns<Activations::int8, true>
                                           : dot_columns<Activations::int8, false>;
    for (size_t t = 0; t < X.count; t += kColumns)
        dot(shape, W, r0, r1, {X.data + t * X.stride, X.stride, std::min(kColumns, X.count - t)},
            y + t * y_stride, y_stride);
}

}  // namespace hf::cpu
