// Formats whose weights are multiplied from registers as they are decoded.
//
// A decoder D describes 32 consecutive weights, a step, that start at any address:
//     D::step_bytes              bytes of a step
//     D::at(step, k)             weight k, 0 <= k < 32: the definition of the format
//     D::at8(step, j)            weights 8j .. 8j+7, 0 <= j < 4, same bits as at()
// Formats whose rows may end inside a step store each weight by itself, so that at() and at8()
// read nothing but the weights asked for.
#pragma once

#include <algorithm>
#include <cmath>

#include "cpuexec/formats/dot_f32.h"

namespace hf::cpu {

inline constexpr size_t kStep = 32;

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
HF_AVX2 void add_products_avx2(const std::byte* const (&rows)[kStreams], size_t n, const float* x,
                               size_t stride, Lanes* lanes) {
    const std::byte* w[kStreams];
    __m256 acc[T][kStreams];
    HF_UNROLL for (size_t s = 0; s < kStreams; ++s) w[s] = rows[s];
    load_lanes(lanes, acc);
    size_t left = n;
    for (; left >= kStep; left -= kStep, x += kStep) {
        ask_ahead(w, 0, 1);
        HF_UNROLL for (size_t j = 0; j < kStep / 8; ++j) add_eight<D, T>(w, j, x, stride, acc);
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) w[s] += D::step_bytes;
    }
    for (size_t j = 0; j < left / 8; ++j) add_eight<D, T>(w, j, x, stride, acc);
    store_lanes(acc, lanes);
    for (size_t k = left / 8 * 8; k < left; ++k)
        for (size_t t = 0; t < T; ++t)
            for (size_t s = 0; s < kStreams; ++s) {
                float& lane = lanes[t][s][k % 8];
                lane = std::fma(D::at(w[s], k), x[t * stride + k], lane);
            }
}

/// The same for any number of columns, three in registers: 4 x 3 accumulators of 16.
template <class D>
void add_columns_avx2(const std::byte* const (&w)[kStreams], size_t n, const float* x,
                      size_t stride, size_t count, Lanes* lanes) {
    constexpr AddTile kAdd[] = {add_products_avx2<D, 1>, add_products_avx2<D, 2>,
                                add_products_avx2<D, 3>};
    add_by_tiles(kAdd, w, n, x, stride, count, lanes);
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

/// A row's steps as a Stretch, plain and in AVX2.
template <class D>
void decode_steps_plain(const WeightView& W, size_t row, size_t first, size_t n, float* out) {
    const std::byte* w = W.base + row * W.row_bytes + first / kStep * D::step_bytes;
    for (size_t i = 0; i < n; ++i) out[i] = D::at(w + i / kStep * D::step_bytes, i % kStep);
}
template <class D>
HF_AVX2 void decode_steps_avx2(const WeightView& W, size_t row, size_t first, size_t n,
                               float* out) {
    const std::byte* w = W.base + row * W.row_bytes + first / kStep * D::step_bytes;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(out + i, D::at8(w + i / kStep * D::step_bytes, i % kStep / 8));
    }
    for (; i < n; ++i) out[i] = D::at(w + i / kStep * D::step_bytes, i % kStep);
}

/// The functions of a format that is described in steps.
template <class D>
constexpr CpuOps step_ops() {
    return f32_ops<decode_steps_plain<D>, decode_steps_avx2<D>, add_columns_avx2<D>,
                   kChunk / kStep * D::step_bytes>();
}

}  // namespace hf::cpu
