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

/// A pass over a stretch of rows: all four streams and both halves of their lanes for one column;
/// for several, whose sums would not fit the registers, two streams, so that what eights share is
/// prepared once, or one half, where nothing has to be prepared.
template <class D, size_t T>
struct Pass {
    static constexpr bool decoded = requires { D::decoded; };
    static constexpr size_t rows = T == 1 || decoded ? kStreams : kStreams / 2;
    static constexpr size_t halves = T > 1 && decoded ? 1 : 2;
    const std::byte* w[rows];
    __m256 acc[T][rows][halves];

    /// Adds the products of 8 weights of each row and T columns.
    HF_AVX2_INLINE void add_eight(size_t j, size_t half, const float* x, size_t stride) {
        __m256 xs[T];
        HF_UNROLL for (size_t t = 0; t < T; ++t) {
            xs[t] = _mm256_loadu_ps(x + t * stride + 8 * j);
            if (T > 1) asm("" : "+x"(xs[t]));  // or it is read again for each row
        }
        HF_UNROLL for (size_t s = 0; s < rows; ++s) {
            const __m256 weights = D::at8(w[s], j);
            HF_UNROLL for (size_t t = 0; t < T; ++t) {
                acc[t][s][half] = _mm256_fmadd_ps(weights, xs[t], acc[t][s][half]);
            }
        }
    }

    /// Adds the products of n weights of the streams from s0 on to lanes, of half h on. Streams
    /// begin at a step; n is a multiple of 8 unless the row ends here.
    HF_AVX2_INLINE void add(const Streams& from, size_t s0, size_t h, size_t n, const float* x,
                            size_t stride, Lanes* lanes) {
        constexpr size_t next = 3 - halves, sums = T * rows * halves;
        HF_UNROLL for (size_t s = 0; s < rows; ++s) w[s] = from.w[s0 + s];
        HF_UNROLL for (size_t i = 0; i < sums; ++i) {
            const size_t t = i / halves / rows, s = i / halves % rows, half = i % halves;
            acc[t][s][half] = _mm256_loadu_ps(lanes[t][s0 + s] + 8 * (h + half));
        }
        size_t left = n;
        for (; left >= kStep; left -= kStep, x += kStep) {
            if (!decoded) ask_ahead(w, 0, 1);
            HF_UNROLL for (size_t j = 0; j < kStep / 8; j += next) {
                add_eight(h + j, j % halves, x, stride);
            }
            HF_UNROLL for (size_t s = 0; s < rows; ++s) w[s] += D::step_bytes;
        }
        HF_UNROLL for (size_t j = 0; j < kStep / 8 - 1; j += next) {
            if (h + j < left / 8) add_eight(h + j, j % halves, x, stride);
        }
        HF_UNROLL for (size_t i = 0; i < sums; ++i) {
            const size_t t = i / halves / rows, s = i / halves % rows, half = i % halves;
            _mm256_storeu_ps(lanes[t][s0 + s] + 8 * (h + half), acc[t][s][half]);
        }
        if (halves == 1 && left / 8 % 2 != h) return;
        for (size_t k = left / 8 * 8; k < left; ++k)
            for (size_t t = 0; t < T; ++t)
                for (size_t s = 0; s < rows; ++s) {
                    float& lane = lanes[t][s0 + s][k % 16];
                    lane = std::fma(D::at(w[s], k), x[t * stride + k], lane);
                }
    }
};

/// Adds the products of n weights of each stream with T columns to their lanes.
template <class D, size_t T>
HF_AVX2 void add_products_avx2(const Streams& from, size_t n, const float* x, size_t stride,
                               Lanes* lanes) {
    using P = Pass<D, T>;
    HF_UNROLL for (size_t s = 0; s < kStreams; s += P::rows) {
        HF_UNROLL for (size_t h = 0; h < 2; h += P::halves) {
            P pass;
            pass.add(from, s, h, n, x, stride, lanes);
        }
    }
}

/// The same for any number of columns, three in registers: 12 accumulators of 16. Several take a
/// chunk at a time, which stays in the first cache for all tiles.
template <class D>
void add_columns_avx2(const Streams& from, size_t n, const float* x, size_t stride, size_t count,
                      Lanes* lanes) {
    constexpr AddTile kAdd[] = {add_products_avx2<D, 1>, add_products_avx2<D, 2>,
                                add_products_avx2<D, 3>};
    const size_t most = count == 1 ? n : kChunk;
    Streams at = from;
    for (size_t taken; n > 0; n -= taken, x += taken) {
        taken = std::min(n, most);
        add_by_tiles(kAdd, at, taken, x, stride, count, lanes);
        for (size_t s = 0; s < kStreams; ++s) at.w[s] += taken / kStep * D::step_bytes;
    }
}

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
    for (; i + kStep <= n; i += kStep, w += D::step_bytes) {
        HF_UNROLL for (size_t j = 0; j < kStep / 8; ++j) {
            _mm256_storeu_ps(out + i + 8 * j, D::at8(w, j));
        }
    }
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(out + i, D::at8(w, i % kStep / 8));
    for (; i < n; ++i) out[i] = D::at(w, i % kStep);
}

/// The functions of a format that is described in steps.
template <class D>
constexpr CpuOps step_ops() {
    return f32_ops<decode_steps_plain<D>, decode_steps_avx2<D>, add_columns_avx2<D>>();
}

}  // namespace hf::cpu
