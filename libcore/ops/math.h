// What few numbers of a pass go through, one by one.
#pragma once

#include <cmath>

namespace hf::host {

inline float sigmoid(float v) {
    return 1.0f / (1.0f + std::exp(-v));
}
/// log(1 + e^v); v itself where the difference is below float's precision.
inline float softplus(float v) {
    return v > 20.0f ? v : std::log1p(std::exp(v));
}

}  // namespace hf::host
