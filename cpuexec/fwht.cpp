#include "cpuexec/fwht.h"

#include <bit>
#include <cstdint>

#include "cpuexec/simd.h"

namespace hf::cpu {
namespace {

/// Signs from a linear congruential generator of 31 bits, and the same times c.
template <size_t block>
struct Signs {
    alignas(32) float plain[block];
    alignas(32) float scaled[block];

    constexpr Signs(uint32_t state, float c) : plain(), scaled() {
        for (size_t i = 0; i < block; ++i) {
            state = (state * 1103515245u + 12345u) & 0x7fffffff;
            plain[i] = state >> 16 & 1 ? 1.0f : -1.0f;
            scaled[i] = c * plain[i];
        }
    }
};

constexpr float kRoot128 = std::bit_cast<float>(0x3db504f3);  // 1 / sqrt(128)
constexpr Signs<256> kFirst256(42, 0.0625f), kSecond256(1042, 0.0625f);
constexpr Signs<128> kFirst128(43, kRoot128), kSecond128(1043, kRoot128);

template <size_t block>
void transform_plain(const float* before, const float* after, const float* x, float* out) {
    float t[block];
    for (size_t i = 0; i < block; ++i) t[i] = x[i] * before[i];
    for (size_t stride = 1; stride < block; stride *= 2)
        for (size_t i = 0; i < block; i += 2 * stride)
            for (size_t j = i; j < i + stride; ++j) {
                const float a = t[j], b = t[j + stride];
                t[j] = a + b;
                t[j + stride] = a - b;
            }
    for (size_t i = 0; i < block; ++i) out[i] = t[i] * after[i];
}

/// Strides 1, 2 and 4 inside a vector: each lane gets its partner, and the second of a pair takes
/// the difference as partner + (-itself).
HF_AVX2_INLINE __m256 butterflies_inside(__m256 v) {
    const __m256 odd = _mm256_setr_ps(0, -0.0f, 0, -0.0f, 0, -0.0f, 0, -0.0f);
    const __m256 upper_two = _mm256_setr_ps(0, 0, -0.0f, -0.0f, 0, 0, -0.0f, -0.0f);
    const __m256 upper_four = _mm256_setr_ps(0, 0, 0, 0, -0.0f, -0.0f, -0.0f, -0.0f);
    v = _mm256_add_ps(_mm256_permute_ps(v, 0xb1), _mm256_xor_ps(v, odd));
    v = _mm256_add_ps(_mm256_permute_ps(v, 0x4e), _mm256_xor_ps(v, upper_two));
    return _mm256_add_ps(_mm256_permute2f128_ps(v, v, 1), _mm256_xor_ps(v, upper_four));
}

template <size_t block>
HF_AVX2 void transform_avx2(const float* before, const float* after, const float* x, float* out) {
    alignas(32) float t[block];
    for (size_t i = 0; i < block; i += 8) {
        const __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_load_ps(before + i));
        _mm256_store_ps(t + i, butterflies_inside(v));
    }
    for (size_t stride = 8; stride < block; stride *= 2)
        for (size_t i = 0; i < block; i += 2 * stride)
            for (size_t j = i; j < i + stride; j += 8) {
                const __m256 a = _mm256_load_ps(t + j), b = _mm256_load_ps(t + j + stride);
                _mm256_store_ps(t + j, _mm256_add_ps(a, b));
                _mm256_store_ps(t + j + stride, _mm256_sub_ps(a, b));
            }
    for (size_t i = 0; i < block; i += 8)
        _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_load_ps(t + i), _mm256_load_ps(after + i)));
}

template <size_t block>
void transform_all(Level level, const Signs<block>& before, const Signs<block>& after,
                   const float* x, size_t n, float* out) {
    const auto transform = level >= Level::avx2 ? transform_avx2<block> : transform_plain<block>;
    for (size_t i = 0; i < n; i += block) transform(before.plain, after.scaled, x + i, out + i);
}

}  // namespace

void rotate(Level level, size_t block, const float* x, size_t n, float* out) {
    if (block == 256) return transform_all(level, kFirst256, kSecond256, x, n, out);
    transform_all(level, kFirst128, kSecond128, x, n, out);
}

void unrotate(Level level, size_t block, const float* x, size_t n, float* out) {
    if (block == 256) return transform_all(level, kSecond256, kFirst256, x, n, out);
    transform_all(level, kSecond128, kFirst128, x, n, out);
}

}  // namespace hf::cpu
