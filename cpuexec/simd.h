// What vector code of several files shares: target attributes, unrolling, loads, the lane fold.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)  // GCC 12 warns of its own undefined vectors (105593)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstring>

/// Without sanitizers, with which these functions take a hundred times longer to compile. What they
/// read is watched by the tests, with pages that cannot be read.
#define HF_UNCHECKED \
    __attribute__((no_sanitize("address"), no_sanitize("undefined"), no_sanitize("thread")))

/// The program is built for the plain machine; functions that use more carry these, and so do the
/// helpers that they call. A lambda does not inherit them: use functions. Their names say the level
/// (scripts/check-levels.sh looks at the machine code).
#define HF_TARGET_AVX2 "avx2,fma,f16c"
#define HF_TARGET_AVXVNNI HF_TARGET_AVX2 ",avxvnni"
#define HF_TARGET_AVX512 HF_TARGET_AVX2 ",avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni"
#define HF_AVX2 __attribute__((target(HF_TARGET_AVX2)))
#define HF_AVX2_INLINE HF_UNCHECKED __attribute__((target(HF_TARGET_AVX2), always_inline)) inline
#define HF_AVXVNNI __attribute__((target(HF_TARGET_AVXVNNI)))
#define HF_AVXVNNI_INLINE \
    HF_UNCHECKED __attribute__((target(HF_TARGET_AVXVNNI), always_inline)) inline
#define HF_AVX512 __attribute__((target(HF_TARGET_AVX512)))
#define HF_AVX512_INLINE \
    HF_UNCHECKED __attribute__((target(HF_TARGET_AVX512), always_inline)) inline

/// Plain code that is compiled as part of its callers, for the instructions of those.
#define HF_INLINE __attribute__((always_inline)) inline

/// Unrolls the next loop completely, so that an array of accumulators lives in registers.
#ifdef __clang__
#define HF_UNROLL _Pragma("unroll")
#else
#define HF_UNROLL _Pragma("GCC unroll 16")
#endif

/// Leaves the next loop a loop.
#ifdef __clang__
#define HF_ROLLED _Pragma("nounroll")
#else
#define HF_ROLLED _Pragma("GCC unroll 1")
#endif

namespace hf::cpu {

/// Reads a T from any address.
template <class T>
HF_INLINE T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
}

/// The canonical end of an 8-lane sum: halves, quarters, then the last two.
inline float fold8(const float* l) {
    return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}
/// Of a 16-lane sum: halves first.
inline float fold16(const float* l) {
    float halves[8];
    for (size_t i = 0; i < 8; ++i) halves[i] = l[i] + l[i + 8];
    return fold8(halves);
}

}  // namespace hf::cpu
