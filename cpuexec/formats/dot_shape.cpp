#include "cpuexec/formats/dot_shape.h"

#include <bit>

namespace hf::cpu {

void dot_by_tiles(DotTile (*tile)(size_t count), size_t most, const WeightView& W, size_t r0,
                  size_t r1, const Columns& X, float* y, size_t y_stride) {
    const size_t run = (r1 - r0 + kStreams - 1) / kStreams;  // rows of a stream
    for (size_t i = 0; i < run; ++i) {
        size_t row[kStreams];  // a stream without an i-th row repeats the last one
        const std::byte* w[kStreams];
        for (size_t s = 0; s < kStreams; ++s) {
            row[s] = std::min(r0 + s * run + i, r1 - 1);
            w[s] = W.base + row[s] * W.row_bytes;
        }
        for (size_t t = 0, count; t < X.count; t += count) {
            count = std::min(most, std::bit_floor(X.count - t));
            float sums[4][kStreams];
            tile(count)(w, W.cols, X.data + t * X.stride, X.stride, sums);
            for (size_t c = 0; c < count; ++c)
                for (size_t s = 0; s < kStreams; ++s)
                    y[(t + c) * y_stride + row[s] - r0] = sums[c][s];
        }
    }
}

}  // namespace hf::cpu
