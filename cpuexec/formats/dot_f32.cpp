#include "cpuexec/formats/dot_f32.h"

#include <algorithm>
#include <cmath>

#include "cpuexec/formats/steps.h"

namespace hf::cpu {
namespace {

constexpr size_t kDirect = 8;  // more columns share one decoding through memory
constexpr size_t kBlock = 64;  // columns of X that do

/// What a row's chunk adds to the lanes of some columns.
void add_chunk_scalar(const float* weights, size_t n, const float* x, size_t stride, size_t count,
                      float (*lanes)[8]) {
    for (size_t i = 0; i < n; ++i)
        for (size_t t = 0; t < count; ++t)
            lanes[t][i % 8] = std::fma(weights[i], x[t * stride + i], lanes[t][i % 8]);
}

/// What a chunk of four rows adds, by the better of two ways. Few columns take the weights from
/// registers as they are decoded, once per tile: measured, that is up to twice as fast for four to
/// eight columns, and slower from twelve on if decoding is dear.
struct ChunksAvx2 {
    Stretch decode;
    const Direct& direct;

    HF_AVX2 void add(const WeightView& W, const size_t (&row)[kStreams], size_t first, size_t n,
                     const float* x, size_t stride, size_t count, Lanes* lanes) const {
        const std::byte* w[kStreams];
        if (direct.add && count <= kDirect) {
            for (size_t s = 0; s < kStreams; ++s)
                w[s] = W.base + row[s] * W.row_bytes + first / kChunk * direct.chunk_bytes;
            const size_t whole = n / direct.step * direct.step;
            direct.add(w, whole, x, stride, count, lanes);
            if (whole == n) return;
            first += whole, n -= whole, x += whole;
        }
        float decoded[kStreams][kChunk + 16];  // rows 4 KiB apart would share cache sets
        for (size_t s = 0; s < kStreams; ++s) {
            decode(W, row[s], first, n, decoded[s]);
            w[s] = reinterpret_cast<const std::byte*>(decoded[s]);
        }
        add_columns_avx2<PlainDecoder>(w, n, x, stride, count, lanes);
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
            float lanes[kColumns][8] = {};
            for (size_t c = 0; c < W.cols; c += kChunk) {
                const size_t n = std::min(kChunk, W.cols - c);
                decode(W, r, c, n, weights);
                add_chunk_scalar(weights, n, X.data + t0 * X.stride + c, X.stride, count, lanes);
            }
            for (size_t t = 0; t < count; ++t) y[(t0 + t) * y_stride + r - r0] = fold8(lanes[t]);
        }
    }
}

HF_AVX2 void dot_f32_avx2(Stretch decode, const Direct& direct, const WeightView& W, size_t r0,
                          size_t r1, const Columns& X, float* y, size_t y_stride) {
    const ChunksAvx2 chunks{decode, direct};
    const size_t run = (r1 - r0 + kStreams - 1) / kStreams;  // rows of a stream
    for (size_t i = 0; i < run; ++i) {
        size_t row[kStreams];  // a stream without an i-th row repeats the last one
        for (size_t s = 0; s < kStreams; ++s) row[s] = std::min(r0 + s * run + i, r1 - 1);
        for (size_t t0 = 0; t0 < X.count; t0 += kBlock) {
            const size_t count = std::min(kBlock, X.count - t0);
            Lanes lanes[kBlock];
            std::memset(lanes, 0, count * sizeof(Lanes));
            for (size_t c = 0; c < W.cols; c += kChunk)
                chunks.add(W, row, c, std::min(kChunk, W.cols - c), X.data + t0 * X.stride + c,
                           X.stride, count, lanes);
            for (size_t t = 0; t < count; ++t)
                for (size_t s = 0; s < kStreams; ++s)
                    y[(t0 + t) * y_stride + row[s] - r0] = fold8(lanes[t][s]);
        }
    }
}

}  // namespace hf::cpu
