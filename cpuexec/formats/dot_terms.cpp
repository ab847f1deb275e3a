#include "cpuexec/formats/dot_terms.h"

#include <algorithm>
#include <cmath>

#include "cpuexec/activations.h"
#include "cpuexec/formats/codes.h"

namespace hf::cpu {
namespace {

/// A prepared column as its header describes it.
struct Prepared {
    const Prepare& p;
    Activations a;
    const std::byte* units;

    const std::byte* unit(size_t term) const { return units + term / 4 * unit_bytes(p, a); }
    float scale(size_t term) const {
        return load<float>(unit(term) + scales_at(p, a) + term % 4 * 4 * sizeof(float));
    }
    float scaled_sum(size_t term) const {
        return load<float>(unit(term) + sums_at(p, a) + term % 4 * 4 * sizeof(float));
    }
    int32_t code(size_t term, size_t position) const {
        const std::byte* at = unit(term) + position / 64 * 64 * code_bytes(a) + position % 64;
        if (a == Activations::int8) return load<int8_t>(at);
        return 256 * load<int8_t>(at) + load<int8_t>(at + 64);
    }
};

/// Integers, scales and zeros of a row's chunk.
struct Chunk {
    Chunk(Stretch terms, const WeightView& W, size_t row, size_t first, size_t n) {
        terms(W, row, first, n, planes);
    }
    int32_t code(size_t i) const { return int32_t(planes[i]); }
    float scale(size_t i) const { return planes[i + kTermPlane]; }
    float zero(size_t i) const { return planes[i + 2 * kTermPlane]; }
    float planes[3 * kTermPlane];
};

/// Adds terms [g, ...) of a chunk of n weights to the four lanes of a column.
void add_chunk(const Chunk& w, size_t n, const Prepared& x, size_t g, const uint16_t* position,
               float* lane) {
    const size_t term = x.p.term, unit = unit_cols(x.p);
    for (size_t i = 0; i < n; i += term, ++g) {
        int32_t sum = 0;
        for (size_t j = i; j < std::min(n, i + term); ++j)
            sum += w.code(j) * x.code(g, position[j % unit]);
        float& to = lane[g % 4];
        if (x.p.zeros) to = std::fma(w.zero(i), x.scaled_sum(g), to);
        to = std::fma(float(sum), w.scale(i) * x.scale(g), to);
    }
}

}  // namespace

void dot_terms_scalar(Stretch terms, const Prepare& prepare, Activations a, const WeightView& W,
                      size_t r0, size_t r1, const Columns& X, float* y, size_t y_stride) {
    constexpr size_t kColumns = 8;  // share one decoding
    uint16_t position[512];         // of a column of a unit
    for (size_t i = 0; i < unit_cols(prepare); ++i) position[column_at(prepare, i)] = uint16_t(i);
    for (size_t r = r0; r < r1; ++r)
        for (size_t t0 = 0; t0 < X.count; t0 += kColumns) {
            const size_t count = std::min(kColumns, X.count - t0);
            float lanes[kColumns][4] = {};
            for (size_t c = 0; c < W.cols; c += kChunk) {
                const size_t n = std::min(kChunk, W.cols - c);
                const Chunk w(terms, W, r, c, n);
                for (size_t t = 0; t < count; ++t) {
                    const float* column = X.data + (t0 + t) * X.stride;
                    const Prepared x{prepare, a, reinterpret_cast<const std::byte*>(column)};
                    add_chunk(w, n, x, c / prepare.term, position, lanes[t]);
                }
            }
            for (size_t t = 0; t < count; ++t) {
                const float* lane = lanes[t];
                y[(t0 + t) * y_stride + r - r0] = (lane[0] + lane[2]) + (lane[1] + lane[3]);
            }
        }
}

}  // namespace hf::cpu
