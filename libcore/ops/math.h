// Scalar building blocks of the host functions, each with its order of sums.
#pragma once

#include <cmath>
#include <cstddef>

namespace hf::host {

inline float sigmoid(float v) {
    return 1.0f / (1.0f + std::exp(-v));
}
inline float silu(float v) {
    return v / (1.0f + std::exp(-v));
}
/// log(1 + e^v); v itself where the difference is below float's precision.
inline float softplus(float v) {
    return v > 20.0f ? v : std::log1p(std::exp(v));
}

/// Eight lanes, element i in lane i % 8, folded as the dots fold theirs.
inline float fold8(const float* lane) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

inline float dot(const float* a, const float* b, size_t n) {
    float lane[8] = {};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t l = 0; l < 8; ++l) lane[l] += a[i + l] * b[i + l];
    for (size_t l = 0; i + l < n; ++l) lane[l] += a[i + l] * b[i + l];
    return fold8(lane);
}

/// y += s * x
inline void axpy(float s, const float* x, float* y, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] += s * x[i];
}

/// out = in / sqrt(mean(in^2) + eps) * w. in and out may be the same.
inline void rmsnorm_row(const float* in, const float* w, float eps, size_t n, float* out) {
    const float scale = 1.0f / std::sqrt(dot(in, in, n) / float(n) + eps);
    for (size_t i = 0; i < n; ++i) out[i] = in[i] * scale * w[i];
}

}  // namespace hf::host
