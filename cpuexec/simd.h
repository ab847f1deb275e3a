// What vector code of several files shares: target attributes, unrolling, loads, the lane fold.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstring>

/// The program is built for the plain machine; functions that use more carry these, and so do the
/// helpers that they call. A lambda does not inherit them: use functions.
#define HF_AVX2 __attribute__((target("avx2,fma,f16c")))
#define HF_AVX2_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) inline

/// Unrolls the next loop completely, so that an array of accumulators lives in registers.
#ifdef __clang__
#define HF_UNROLL _Pragma("unroll")
#else
#define HF_UNROLL _Pragma("GCC unroll 16")
#endif

namespace hf::cpu {

/// Reads a T from any address.
template <class T>
inline T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
}

/// The canonical end of an 8-lane sum: halves, quarters, then the last two.
inline float fold8(const float* l) {
    return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

}  // namespace hf::cpu
