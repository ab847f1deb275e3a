// What encoders share: codes into bytes, the nearest of some levels, the largest magnitude.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hf::quantize {

/// Packs n codes, a multiple of 8, as a bit stream (cpuexec/blocks.h).
template <unsigned width>
void pack(const uint8_t* codes, size_t n, uint8_t* out) {
    for (size_t i = 0; i < n; i += 8, out += width) {
        uint64_t bits = 0;
        for (size_t k = 0; k < 8; ++k) bits |= uint64_t(codes[i + k]) << k * width;
        std::memcpy(out, &bits, width);
    }
}

/// codes[i] = the level nearest to x[i], the first one of equals.
inline void nearest(const float* x, size_t n, const float* levels, size_t count, uint8_t* codes) {
    constexpr size_t kRun = 64;
    for (size_t i = 0; i < n; i += kRun) {
        const size_t run = n - i < kRun ? n - i : kRun;
        float distance[kRun];
        int32_t code[kRun];
        for (size_t j = 0; j < run; ++j) {
            distance[j] = std::fabs(x[i + j] - levels[0]);
            code[j] = 0;
        }
        for (size_t k = 1; k < count; ++k)
            for (size_t j = 0; j < run; ++j) {
                const float d = std::fabs(x[i + j] - levels[k]), best = distance[j];
                const int32_t nearer = -int32_t(d < best);  // all ones or none: no branch
                code[j] = (int32_t(k) & nearer) | (code[j] & ~nearer);
                distance[j] = d < best ? d : best;
            }
        for (size_t j = 0; j < run; ++j) codes[i + j] = uint8_t(code[j]);
    }
}

inline float largest_magnitude(const float* x, size_t n) {
    float largest = 0;
    for (size_t i = 0; i < n; ++i) largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
    return largest;
}

/// numerator / x, and 0 where that is no float: weights so small are encoded as zeros.
inline float inverse(float x, float numerator = 1) {
    const float quotient = numerator / x;
    return std::isfinite(quotient) ? quotient : 0;
}

/// x rounded to an integer of [low, high], ties away from zero.
inline int round_to(float x, int low, int high) {
    const float r = std::round(x);
    return r > float(low) ? (r < float(high) ? int(r) : high) : low;
}

/// The block at index i.
template <class Block>
Block& block_at(std::byte* from, size_t i) {
    return reinterpret_cast<Block*>(from)[i];
}

}  // namespace hf::quantize
