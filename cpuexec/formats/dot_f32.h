// The f32 dot products, written once over a format's decoder.
//
// A decoder D describes 32 consecutive weights, a step, that start at any address:
//     D::step_bytes              bytes of a step
//     D::at(step, k)             weight k, 0 <= k < 32: the definition of the format
//     D::at8(step, j)            weights 8j .. 8j+7, 0 <= j < 4, same bits as at()
// Formats whose rows may end inside a step store each weight by itself, so that at() and at8()
// read nothing but the weights asked for.
//
// Order of sums, at every level, for any number of columns: element i of a row is added to lane
// i % 8 by fma, i ascending; the lanes are folded by fold8(). Only NaN payloads may differ.
#pragma once

#include <algorithm>
#include <cmath>

#include "cpuexec/codec_ops.h"
#include "cpuexec/simd.h"

namespace hf::cpu {

inline constexpr size_t kStep = 32;

template <class D>
void decode_row(const WeightView& W, size_t row, float* out) {
    const std::byte* w = W.base + row * W.row_bytes;
    for (size_t i = 0; i < W.cols; ++i) out[i] = D::at(w + i / kStep * D::step_bytes, i % kStep);
}

/// The plain dot: a weight is decoded once for up to eight columns.
template <class D>
void dot_f32_scalar(const WeightView& W, size_t r0, size_t r1, const Columns& X, float* y,
                    size_t y_stride) {
    constexpr size_t kColumns = 8;
    for (size_t r = r0; r < r1; ++r) {
        const std::byte* w = W.base + r * W.row_bytes;
        for (size_t t0 = 0; t0 < X.count; t0 += kColumns) {
            const size_t count = std::min(kColumns, X.count - t0);
            float lanes[kColumns][8] = {};
            for (size_t i = 0; i < W.cols; ++i) {
                const float weight = D::at(w + i / kStep * D::step_bytes, i % kStep);
                for (size_t t = 0; t < count; ++t) {
                    float& lane = lanes[t][i % 8];
                    lane = std::fma(weight, X.f32[(t0 + t) * X.stride + i], lane);
                }
            }
            for (size_t t = 0; t < count; ++t) y[(t0 + t) * y_stride + r - r0] = fold8(lanes[t]);
        }
    }
}

/// The AVX2 dot works on four rows at a time: with one accumulator for a row and column, that is
/// what hides the latency of fma. The four are far apart, and each stream walks a contiguous run of
/// rows: the memory sees four long reads, where neighbouring rows would begin a new one at each
/// row.
inline constexpr size_t kStreams = 4;
inline constexpr size_t kTile = 3;              // columns in registers: 4 x 3 accumulators of 16
inline constexpr size_t kDirect = 8;            // more columns share one decoding through memory
inline constexpr size_t kBlock = 64;            // columns of X that do
inline constexpr size_t kChunk = 1024;          // columns of W decoded at a time: 16 KiB
inline constexpr size_t kPrefetchBytes = 1024;  // ahead in each stream

using Lanes = float[kStreams][8];  // of one column of X

/// Adds the products of 8 weights of each stream and T columns.
template <class D, size_t T>
HF_AVX2_INLINE void add_eight(const std::byte* const (&w)[kStreams], size_t j, const float* x,
                              size_t stride, __m256 (&acc)[T][kStreams]) {
    __m256 xs[T];
    HF_UNROLL for (size_t t = 0; t < T; ++t) xs[t] = _mm256_loadu_ps(x + t * stride + 8 * j);
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
        const __m256 weights = D::at8(w[s], j);
        HF_UNROLL for (size_t t = 0; t < T; ++t) {
            acc[t][s] = _mm256_fmadd_ps(weights, xs[t], acc[t][s]);
        }
    }
}

/// Adds the products of n weights of each stream with T columns to their lanes. w[s] begins at a
/// step; n is a multiple of 8 unless the row ends here.
template <class D, size_t T>
HF_AVX2 void add_products(const std::byte* const (&rows)[kStreams], size_t n, const float* x,
                          size_t stride, Lanes* lanes) {
    const std::byte* w[kStreams];
    __m256 acc[T][kStreams];
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) w[s] = rows[s];
    HF_UNROLL for (size_t t = 0; t < T; ++t) {
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) acc[t][s] = _mm256_loadu_ps(lanes[t][s]);
    }
    size_t left = n;
    for (; left >= kStep; left -= kStep, x += kStep) {
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
            _mm_prefetch(reinterpret_cast<const char*>(w[s]) + kPrefetchBytes, _MM_HINT_T0);
        }
        HF_UNROLL for (size_t j = 0; j < kStep / 8; ++j) add_eight<D, T>(w, j, x, stride, acc);
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) w[s] += D::step_bytes;
    }
    for (size_t j = 0; j < left / 8; ++j) add_eight<D, T>(w, j, x, stride, acc);
    HF_UNROLL for (size_t t = 0; t < T; ++t) {
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) _mm256_storeu_ps(lanes[t][s], acc[t][s]);
    }
    for (size_t k = left / 8 * 8; k < left; ++k)
        for (size_t t = 0; t < T; ++t)
            for (size_t s = 0; s < kStreams; ++s) {
                float& lane = lanes[t][s][k % 8];
                lane = std::fma(D::at(w[s], k), x[t * stride + k], lane);
            }
}

/// The same for any number of columns.
template <class D>
HF_AVX2 void add_columns(const std::byte* const (&w)[kStreams], size_t n, const float* x,
                         size_t stride, size_t count, Lanes* lanes) {
    for (size_t t = 0; t < count;) {
        const size_t left = count - t, tile = left == 4 ? 2 : std::min(left, kTile);
        const auto add = tile == 3   ? add_products<D, 3>
                         : tile == 2 ? add_products<D, 2>
                                     : add_products<D, 1>;
        add(w, n, x + t * stride, stride, lanes + t);
        t += tile;
    }
}

/// Weights that were decoded already.
struct PlainDecoder {
    static constexpr size_t step_bytes = kStep * sizeof(float);
    static float at(const std::byte* step, size_t k) {
        return load<float>(step + k * sizeof(float));
    }
    HF_AVX2_INLINE static __m256 at8(const std::byte* step, size_t j) {
        return _mm256_loadu_ps(reinterpret_cast<const float*>(step + j * 8 * sizeof(float)));
    }
};

/// Decodes n weights that begin at a step.
template <class D>
HF_AVX2 void decode_avx2(const std::byte* w, size_t n, float* out) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(out + i, D::at8(w + i / kStep * D::step_bytes, i % kStep / 8));
    }
    for (; i < n; ++i) out[i] = D::at(w + i / kStep * D::step_bytes, i % kStep);
}

/// add_columns() by the better of two ways. Few columns take the weights from registers as they are
/// decoded, once per tile: measured, that is up to twice as fast for four to eight columns, and
/// slower from twelve on if decoding is dear.
template <class D>
HF_AVX2 void add_chunk(const std::byte* const (&w)[kStreams], size_t n, const float* x,
                       size_t stride, size_t count, Lanes* lanes) {
    if (count <= kDirect) return add_columns<D>(w, n, x, stride, count, lanes);
    float decoded[kStreams][kChunk + 16];  // rows 4 KiB apart would share cache sets
    const std::byte* d[kStreams];
    for (size_t s = 0; s < kStreams; ++s) {
        decode_avx2<D>(w[s], n, decoded[s]);
        d[s] = reinterpret_cast<const std::byte*>(decoded[s]);
    }
    add_columns<PlainDecoder>(d, n, x, stride, count, lanes);
}

template <class D>
HF_AVX2 void dot_f32_avx2(const WeightView& W, size_t r0, size_t r1, const Columns& X, float* y,
                          size_t y_stride) {
    const size_t run = (r1 - r0 + kStreams - 1) / kStreams;  // rows of a stream
    for (size_t i = 0; i < run; ++i) {
        size_t row[kStreams];  // a stream without an i-th row repeats the last one
        for (size_t s = 0; s < kStreams; ++s) row[s] = std::min(r0 + s * run + i, r1 - 1);
        for (size_t t0 = 0; t0 < X.count; t0 += kBlock) {
            const size_t count = std::min(kBlock, X.count - t0);
            Lanes lanes[kBlock];
            std::memset(lanes, 0, count * sizeof(Lanes));
            for (size_t c = 0; c < W.cols; c += kChunk) {
                const std::byte* w[kStreams];
                for (size_t s = 0; s < kStreams; ++s)
                    w[s] = W.base + row[s] * W.row_bytes + c / kStep * D::step_bytes;
                add_chunk<D>(w, std::min(kChunk, W.cols - c), X.f32 + t0 * X.stride + c, X.stride,
                             count, lanes);
            }
            for (size_t t = 0; t < count; ++t)
                for (size_t s = 0; s < kStreams; ++s)
                    y[(t0 + t) * y_stride + row[s] - r0] = fold8(lanes[t][s]);
        }
    }
}

/// The table of a format that has f32 dots only.
template <class D>
constexpr decltype(CpuOps::dot) f32_dots() {
    decltype(CpuOps::dot) dots{};
    dots[size_t(Level::scalar)][size_t(Activations::f32)] = dot_f32_scalar<D>;
    dots[size_t(Level::avx2)][size_t(Activations::f32)] = dot_f32_avx2<D>;
    return dots;
}

}  // namespace hf::cpu
