// Turns with AMX: a tile of weights, 16 rows as they are unpacked, meets a tile of quads.
#pragma once

#include <immintrin.h>

#include "cpuexec/formats/batch_turns.h"

namespace hf::cpu {

#define HF_TARGET_AMX HF_TARGET_AVX512 ",amx-tile,amx-int8"
#define HF_AMX HF_UNCHECKED __attribute__((target(HF_TARGET_AMX)))
#define HF_AMX_INLINE HF_UNCHECKED __attribute__((target(HF_TARGET_AMX), always_inline)) inline

/// Rows and bytes of a row of the eight tiles (Intel SDM volume 1, 18.2).
struct alignas(64) TileConfig {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
};

/// Tiles 0 .. 3: sums (16 rows, columns), high and low plane, of two turns. 4, 5: activations
/// (quads, columns). 6: weights (16 rows, codes of a term's part).
class AmxTiles {
  public:
    HF_AMX explicit AmxTiles(const TermShape& shape) {
        TileConfig config;
        for (size_t tile = 0; tile < 6; ++tile) {
            config.rows[tile] = uint8_t(tile < 4 ? kPanelRows : shape.quads);
            config.row_bytes[tile] = uint16_t(shape.quad_bytes());
        }
        config.rows[6] = kPanelRows;
        config.row_bytes[6] = uint16_t(4 * shape.quads);
        asm volatile("" : : "r"(&config) : "memory");  // GCC 12 would store behind the next line
        _tile_loadconfig(&config);
    }
    HF_AMX ~AmxTiles() { _tile_release(); }
    AmxTiles(const AmxTiles&) = delete;
};

/// Tiles are worked on in the order of the program: a store right behind the multiplications that
/// it waits for holds up all that follow. So a turn is multiplied while the one before it is stored
/// and the one before that is added.
template <Activations a, bool zeros, size_t width>
struct AmxTurns {
    static constexpr Signs signs = Signs::kept;
    using Setup = AmxTiles;
    static constexpr size_t planes = code_bytes(a);
    static constexpr bool side_by_side = planes == 2 && width < kTileColumns;  // in one tile
    static constexpr bool two = planes == 2 && !side_by_side;                  // tiles of sums
    static constexpr size_t row = side_by_side ? kTileColumns : width;         // of a tile
    using Sums = int32_t[1 + two][kPanelRows * row];  // [plane][row][column]

// A tile is part of an instruction's name, so sums that lie in different ones need code of their
// own.
#define HF_MULTIPLY(name, high, low)                                           \
    HF_AMX_INLINE static void name(const TermShape& shape, const std::byte* w, \
                                   const std::byte* x) {                       \
        _tile_zero(high);                                                      \
        if constexpr (two) _tile_zero(low);                                    \
        for (size_t part = 0; part < shape.parts; ++part) {                    \
            _tile_loadd(6, w, 64);                                             \
            _tile_loadd(4, x, 4 * row);                                        \
            HF_TILE_DOT(high, 6, 4);                                           \
            if constexpr (two) {                                               \
                _tile_loadd(5, x + shape.plane_bytes(), 4 * row);              \
                HF_TILE_DOT(low, 6, 5);                                        \
            }                                                                  \
            w += sizeof(Panel::codes[0]), x += shape.part_bytes();             \
        }                                                                      \
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

    HF_AMX_INLINE static void store(size_t n, Sums (&sums)[2]) {
        if (n % 2 == 0) {
            _tile_stored(0, sums[0][0], 4 * row);
            if constexpr (two) _tile_stored(1, sums[0][1], 4 * row);
        } else {
            _tile_stored(2, sums[1][0], 4 * row);
            if constexpr (two) _tile_stored(3, sums[1][1], 4 * row);
        }
    }

    /// Of vector v, both planes.
    HF_AMX_INLINE static __m512i sum_of(const Sums& sums, size_t v) {
        __m512i high = _mm512_load_si512(&sums[0][kTileColumns * v * (1 + side_by_side)]), low;
        if constexpr (planes == 1) return high;
        if constexpr (two) {
            low = _mm512_load_si512(&sums[1][kTileColumns * v]);
        } else {  // two rows, each both planes
            const __m512i next = _mm512_load_si512(&sums[0][kTileColumns * (2 * v + 1)]);
            low = _mm512_shuffle_i64x2(high, next, 0xee);
            high = _mm512_shuffle_i64x2(high, next, 0x44);
        }
        return _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
    }

    /// Adds the sums of a term to its lane, which stays in registers from its first term to its
    /// last.
    HF_AMX_INLINE static void add(const Tile& tile, size_t term, const Sums& sums, TileLanes& lanes,
                                  __m512 (&lane)[width]) {
        const avx512::Scales<width> scales(tile, term);
        if (term < 4) {
            HF_UNROLL for (size_t v = 0; v < width; ++v) lane[v] = _mm512_load_ps(lanes.v[term][v]);
        }
        HF_UNROLL for (size_t v = 0; v < width; ++v) {
            scales.template add<zeros>(sum_of(sums, v), v, lane[v]);
        }
        if (term + 4 >= tile.terms) {
            HF_UNROLL for (size_t v = 0; v < width; ++v)
                _mm512_store_ps(lanes.v[term % 4][v], lane[v]);
        }
    }

    HF_AMX static void run(const Tile& given, TileLanes& lanes, ReadAhead& given_ahead) {
        const Tile tile = given;  // what lies behind a reference is read again after each store
        const TermShape shape = tile.shape;
        ReadAhead ahead = given_ahead;
        alignas(64) Sums sums[2];
        __m512 lane[width];
        size_t n = 0, before = 0, current = 0;
        for (size_t first = 0; first < std::min<size_t>(tile.terms, 4); ++first) {
            const std::byte* w = shape.codes(tile.panel, first);
            const std::byte* x = tile.x + first * shape.term_bytes();
            for (size_t term = first; term < tile.terms; term += 4, ++n) {
                if (n % 2 == 0)
                    multiply_even(shape, w, x);
                else
                    multiply_odd(shape, w, x);
                if (n >= 1) store(n - 1, sums);
                if (n >= 2) add(tile, before, sums[n % 2], lanes, lane);
                ahead.turn();
                before = current, current = term;
                w += shape.vectors() * sizeof(Panel::codes[0]);
                x += 4 * shape.term_bytes();
            }
        }
        store(n - 1, sums);
        if (n >= 2) add(tile, before, sums[n % 2], lanes, lane);
        add(tile, current, sums[(n - 1) % 2], lanes, lane);
        given_ahead = ahead;
    }
};

}  // namespace hf::cpu
