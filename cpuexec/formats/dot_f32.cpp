#include "cpuexec/formats/dot_f32.h"

#include <algorithm>
#include <cmath>

#include "cpuexec/formats/f32.h"

namespace hf::cpu {
namespace {

/// As many columns take the weights from registers as they are decoded, once per tile, and more of
/// them share one decoding through memory. Measured, the first is up to twice as fast for four to
/// eight columns, and slower from twelve on if decoding is dear.
constexpr size_t kDirect = 8;
constexpr size_t kBlock = 64;  // columns of X that do

/// Weights of the buffer.
struct Decoded : F32Decoder {
    static constexpr bool decoded = true;
};

template <size_t T>
HF_AVX512 void add_decoded_tile_avx512(const Streams& from, size_t n, const float* x, size_t stride,
                                       Lanes* lanes) {
    __m512 acc[T][kStreams];
    HF_UNROLL for (size_t i = 0; i < T * kStreams; ++i) {
        acc[i / kStreams][i % kStreams] = _mm512_loadu_ps(lanes[i / kStreams][i % kStreams]);
    }
    for (size_t k = 0; k < n; k += 16) {
        const __mmask16 rest = n - k < 16 ? __mmask16((1u << (n - k)) - 1) : __mmask16(0xffff);
        __m512 xs[T];
        HF_UNROLL for (size_t t = 0; t < T; ++t) {
            xs[t] = _mm512_maskz_loadu_ps(rest, x + t * stride + k);
        }
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
            const __m512 w =
                _mm512_maskz_loadu_ps(rest, reinterpret_cast<const float*>(from.w[s]) + k);
            HF_UNROLL for (size_t t = 0; t < T; ++t) {
                acc[t][s] = _mm512_mask3_fmadd_ps(w, xs[t], acc[t][s], rest);
            }
        }
    }
    HF_UNROLL for (size_t i = 0; i < T * kStreams; ++i) {
        _mm512_storeu_ps(lanes[i / kStreams][i % kStreams], acc[i / kStreams][i % kStreams]);
    }
}

/// What a row's chunk adds to the lanes of some columns.
void add_chunk_scalar(const float* weights, size_t n, const float* x, size_t stride, size_t count,
                      float (*lanes)[16]) {
    for (size_t i = 0; i < n; ++i)
        for (size_t t = 0; t < count; ++t)
            lanes[t][i % 16] = std::fma(weights[i], x[t * stride + i], lanes[t][i % 16]);
}

/// fold16() in vectors.
HF_AVX2_INLINE float fold16_avx2(const float* lanes) {
    const __m256 halves = _mm256_add_ps(_mm256_loadu_ps(lanes), _mm256_loadu_ps(lanes + 8));
    const __m128 quarters =
        _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
    const __m128 two = _mm_add_ps(quarters, _mm_movehl_ps(quarters, quarters));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/// What four rows add to the lanes of some columns.
struct FourRowsAvx2 {
    Stretch decode;
    AddColumns add_decoded;
    const Direct& direct;

    HF_AVX2 void add(const WeightView& W, const size_t (&row)[kStreams], const float* x,
                     size_t stride, size_t count, Lanes* lanes) const {
        size_t c = 0;
        if (direct.add && count <= kDirect) {
            Streams from;
            for (size_t s = 0; s < kStreams; ++s) {
                from.w[s] = W.base + row[s] * W.row_bytes;
                from.side[s] = W.sidecar + row[s] * W.cols / 256 * direct.side_bytes;
            }
            c = W.cols / direct.step * direct.step;
            direct.add(from, c, x, stride, count, lanes);
        }
        for (size_t n; c < W.cols; c += n) {
            n = std::min(kChunk, W.cols - c);
            add_chunk(W, row, c, n, x + c, stride, count, lanes);
        }
    }

    HF_AVX2 void add_chunk(const WeightView& W, const size_t (&row)[kStreams], size_t first,
                           size_t n, const float* x, size_t stride, size_t count,
                           Lanes* lanes) const {
        alignas(
            64) float decoded[kStreams][kChunk + 16];  // rows 4 KiB apart would share cache sets
        Streams from = {};
        for (size_t s = 0; s < kStreams; ++s) {
            decode(W, row[s], first, n, decoded[s]);
            from.w[s] = reinterpret_cast<const std::byte*>(decoded[s]);
        }
        add_decoded(from, n, x, stride, count, lanes);
    }
};

}  // namespace

void dot_f32_scalar(Stretch decode, const WeightView& W, size_t r0, size_t r1, const Columns& X,
                    float* y, size_t y_stride) {
    constexpr size_t kColumns = 8;  // share one decoding
    float weights[kChunk];
    for (size_t r = r0; r < r1; ++r) {
        for (size_t t0 = 0; t0 < X.count; t0 += kColumns) {
            const size_t count = std::min(kColumns, X.count - t0);
            float lanes[kColumns][16] = {};
            for (size_t c = 0; c < W.cols; c += kChunk) {
                const size_t n = std::min(kChunk, W.cols - c);
                decode(W, r, c, n, weights);
                add_chunk_scalar(weights, n, X.data + t0 * X.stride + c, X.stride, count, lanes);
            }
            for (size_t t = 0; t < count; ++t) y[(t0 + t) * y_stride + r - r0] = fold16(lanes[t]);
        }
    }
}

void add_decoded_avx2(const Streams& from, size_t n, const float* x, size_t stride, size_t count,
                      Lanes* lanes) {
    add_columns_avx2<Decoded>(from, n, x, stride, count, lanes);
}
void add_decoded_avx512(const Streams& from, size_t n, const float* x, size_t stride, size_t count,
                        Lanes* lanes) {
    constexpr AddTile kAdd[] = {add_decoded_tile_avx512<1>, add_decoded_tile_avx512<2>,
                                add_decoded_tile_avx512<3>, add_decoded_tile_avx512<4>};
    add_by_tiles(kAdd, from, n, x, stride, count, lanes);
}

HF_AVX2 void dot_f32_avx2(Stretch decode, AddColumns add_decoded, const Direct& direct,
                          const WeightView& W, size_t r0, size_t r1, const Columns& X, float* y,
                          size_t y_stride) {
    const FourRowsAvx2 rows{decode, add_decoded, direct};
    const size_t run = (r1 - r0 + kStreams - 1) / kStreams;  // rows of a stream
    for (size_t i = 0; i < run; ++i) {
        size_t row[kStreams];  // a stream without an i-th row repeats the last one
        for (size_t s = 0; s < kStreams; ++s) row[s] = std::min(r0 + s * run + i, r1 - 1);
        for (size_t t0 = 0; t0 < X.count; t0 += kBlock) {
            const size_t count = std::min(kBlock, X.count - t0);
            Lanes lanes[kBlock];
            std::memset(lanes, 0, count * sizeof(Lanes));
            rows.add(W, row, X.data + t0 * X.stride, X.stride, count, lanes);
            for (size_t t = 0; t < count; ++t)
                for (size_t s = 0; s < kStreams; ++s)
                    y[(t0 + t) * y_stride + row[s] - r0] = fold16_avx2(lanes[t][s]);
        }
    }
}

}  // namespace hf::cpu
