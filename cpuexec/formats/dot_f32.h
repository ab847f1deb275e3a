// The f32 dot products, written once for all formats.
//
// A format brings a Stretch, plain and in AVX2, and its dots are made of that: rows are decoded a
// chunk at a time into a buffer that stays in cache, and multiplied from there. A format whose
// weights are cheap to decode in registers brings a Direct as well (steps.h, levels.h).
//
// Order of sums, at every level, for any number of columns: element i of a row is added to lane
// i % 16 by fma, i ascending; the lanes are folded by fold16(). Only NaN payloads may differ.
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
using Rows = const std::byte* const (&)[kStreams];
using Lanes = float[kStreams][16];  // of one column of X

/// Where the streams stand, each in its row and in what the sidecar has for it.
struct Streams {
    const std::byte* w[kStreams];
    const std::byte* side[kStreams];
};

/// Adds the products of n weights of each stream with `count` columns to their lanes. n is a
/// multiple of Direct::step, and of 8 unless the row ends here.
using AddColumns = void (*)(const Streams& from, size_t n, const float* x, size_t stride,
                            size_t count, Lanes* lanes);

/// The same for as many columns as it is compiled for.
using AddTile = void (*)(const Streams& from, size_t n, const float* x, size_t stride,
                         Lanes* lanes);

/// Any number of columns by tiles: add[i] takes i + 1 of them. Four that do not fit make two pairs.
template <size_t most>
void add_by_tiles(const AddTile (&add)[most], const Streams& from, size_t n, const float* x,
                  size_t stride, size_t count, Lanes* lanes) {
    for (size_t t = 0, tile; t < count; t += tile) {
        const size_t left = count - t;
        tile = left == 4 && most == 3 ? 2 : std::min(left, most);
        add[tile - 1](from, n, x + t * stride, stride, lanes + t);
    }
}

inline constexpr size_t kPrefetch = 1024;  // bytes ahead in each stream

/// Asks for lines first .. last - 1 of what lies so far ahead.
template <size_t rows>
HF_AVX2_INLINE void ask_ahead(const std::byte* const (&w)[rows], size_t first, size_t last) {
    HF_UNROLL for (size_t line = first; line < last; ++line) {
        HF_UNROLL for (size_t s = 0; s < rows; ++s) {
            _mm_prefetch(reinterpret_cast<const char*>(w[s] + kPrefetch + 64 * line), _MM_HINT_T0);
        }
    }
}

/// Adds the products of n decoded weights of each stream: floats at w[s].
void add_decoded_avx2(const Streams& from, size_t n, const float* x, size_t stride, size_t count,
                      Lanes* lanes);
void add_decoded_avx512(const Streams& from, size_t n, const float* x, size_t stride, size_t count,
                        Lanes* lanes);

/// What serves few columns, without a buffer.
struct Direct {
    AddColumns add = nullptr;
    size_t step = 1;        // columns; what a row has beyond a multiple of them is decoded
    size_t side_bytes = 0;  // of the sidecar for 256 weights of a row, row by row
};

/// As `Dot`, over a plain Stretch.
void dot_f32_scalar(Stretch decode, const WeightView& W, size_t r0, size_t r1, const Columns& X,
                    float* y, size_t y_stride);

/// The same in AVX2, on machines that have it; what it is given may be of a higher level.
void dot_f32_avx2(Stretch decode, AddColumns add_decoded, const Direct& direct, const WeightView& W,
                  size_t r0, size_t r1, const Columns& X, float* y, size_t y_stride);
template <Stretch avx2, AddColumns add_decoded, AddColumns add, size_t step = 1,
          size_t side_bytes = 0>
void dot_direct(const WeightView& W, size_t r0, size_t r1, const Columns& X, float* y,
                size_t y_stride) {
    dot_f32_avx2(avx2, add_decoded, {add, step, side_bytes}, W, r0, r1, X, y, y_stride);
}

/// The functions of a format that brings these.
template <Stretch plain, Stretch avx2, AddColumns add = nullptr>
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
    ops.dot[size_t(Level::avx2)][size_t(Activations::f32)] =
        dot_direct<avx2, add_decoded_avx2, add>;
    ops.dot[size_t(Level::avx512vnni)][size_t(Activations::f32)] =
        dot_direct<avx2, add_decoded_avx512, add>;
    return ops;
}

}  // namespace hf::cpu
