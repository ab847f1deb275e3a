// The f32 dot products, written once for all formats.
//
// A format brings a Stretch, plain and in AVX2, and its dots are made of that: rows are decoded a
// chunk at a time into a buffer that stays in cache, and multiplied from there. A format whose
// weights are cheap to decode in registers brings a Direct as well (steps.h, levels.h).
//
// Order of sums, at every level, for any number of columns: element i of a row is added to lane
// i % 8 by fma, i ascending; the lanes are folded by fold8(). Only NaN payloads may differ.
#pragma once

#include <algorithm>

#include "cpuexec/codec_ops.h"
#include "cpuexec/simd.h"

namespace hf::cpu {

inline constexpr size_t kChunk = 1024;  // columns of W decoded at a time

/// Writes weights [first, first + n) of a row; first is a multiple of kChunk, or where a Direct has
/// stopped, and n is a multiple of 8 unless the row ends there. The plain one over a whole row is
/// the definition of the format.
using Stretch = void (*)(const WeightView& W, size_t row, size_t first, size_t n, float* out);

/// The AVX2 dot works on four rows at a time: with one accumulator for a row and column, that is
/// what hides the latency of fma. The four are far apart, and each stream walks a contiguous run of
/// rows: the memory sees four long reads, where neighbouring rows would begin a new one at each
/// row.
inline constexpr size_t kStreams = 4;
using Lanes = float[kStreams][8];  // of one column of X

/// Adds the products of n weights of each stream with `count` columns to their lanes. w[s] begins
/// at a chunk; n is a multiple of Direct::step, and of 8 unless the row ends here.
using AddColumns = void (*)(const std::byte* const (&w)[kStreams], size_t n, const float* x,
                            size_t stride, size_t count, Lanes* lanes);

/// The same for as many columns as it is compiled for.
using AddTile = void (*)(const std::byte* const (&w)[kStreams], size_t n, const float* x,
                         size_t stride, Lanes* lanes);

/// Any number of columns by tiles: add[i] takes i + 1 of them. Four make two pairs.
template <size_t most>
void add_by_tiles(const AddTile (&add)[most], const std::byte* const (&w)[kStreams], size_t n,
                  const float* x, size_t stride, size_t count, Lanes* lanes) {
    for (size_t t = 0, tile; t < count; t += tile) {
        const size_t left = count - t;
        tile = left == 4 ? 2 : std::min(left, most);
        add[tile - 1](w, n, x + t * stride, stride, lanes + t);
    }
}

/// The lanes of a tile's columns, in registers while products are added.
template <size_t T>
HF_AVX2_INLINE void load_lanes(const Lanes* lanes, __m256 (&acc)[T][kStreams]) {
    HF_UNROLL for (size_t t = 0; t < T; ++t) {
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) acc[t][s] = _mm256_loadu_ps(lanes[t][s]);
    }
}
template <size_t T>
HF_AVX2_INLINE void store_lanes(const __m256 (&acc)[T][kStreams], Lanes* lanes) {
    HF_UNROLL for (size_t t = 0; t < T; ++t) {
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) _mm256_storeu_ps(lanes[t][s], acc[t][s]);
    }
}

inline constexpr size_t kPrefetch = 1024;  // bytes ahead in each stream

/// Asks for lines first .. last - 1 of what lies so far ahead.
HF_AVX2_INLINE void ask_ahead(const std::byte* const (&w)[kStreams], size_t first, size_t last) {
    HF_UNROLL for (size_t line = first; line < last; ++line) {
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
            _mm_prefetch(reinterpret_cast<const char*>(w[s] + kPrefetch + 64 * line), _MM_HINT_T0);
        }
    }
}

/// What serves few columns, without a buffer.
struct Direct {
    AddColumns add = nullptr;
    size_t chunk_bytes = 0;  // packed bytes of a chunk
    size_t step = 1;         // columns; what a row has beyond a multiple of them is decoded
};

/// As `Dot`, over a plain Stretch.
void dot_f32_scalar(Stretch decode, const WeightView& W, size_t r0, size_t r1, const Columns& X,
                    float* y, size_t y_stride);

/// The same in AVX2, on machines that have it. `direct` may be of a higher level, or null.
void dot_f32_avx2(Stretch decode, const Direct& direct, const WeightView& W, size_t r0, size_t r1,
                  const Columns& X, float* y, size_t y_stride);
template <Stretch avx2, AddColumns add, size_t chunk_bytes, size_t step = 1>
void dot_direct(const WeightView& W, size_t r0, size_t r1, const Columns& X, float* y,
                size_t y_stride) {
    dot_f32_avx2(avx2, {add, chunk_bytes, step}, W, r0, r1, X, y, y_stride);
}

/// The functions of a format that brings these.
template <Stretch plain, Stretch avx2, AddColumns add = nullptr, size_t chunk_bytes = 0>
constexpr CpuOps f32_ops() {
    CpuOps ops{.prepare = {},
               .decode_row = [](const WeightView& W, size_t row,
                                float* out) { plain(W, row, 0, W.cols, out); },
               .decode_row_avx2 = [](const WeightView& W, size_t row,
                                     float* out) { avx2(W, row, 0, W.cols, out); },
               .dot = {}};
    ops.dot[size_t(Level::scalar)][size_t(Activations::f32)] =
        [](const WeightView& W, size_t r0, size_t r1, const Columns& X, float* y, size_t y_stride) {
            dot_f32_scalar(plain, W, r0, r1, X, y, y_stride);
        };
    ops.dot[size_t(Level::avx2)][size_t(Activations::f32)] = dot_direct<avx2, add, chunk_bytes>;
    return ops;
}

}  // namespace hf::cpu
