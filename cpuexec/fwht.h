// The rotation that formats put between weights and activations, and the division that AWQ puts
// before it.
//
//   R = c D2 H D1 on every block of 256 (or 128) values; c = 1 / sqrt(block)
//   H[i][j] = (-1)^popcount(i & j), the Walsh-Hadamard matrix; D1, D2 diagonals of fixed signs
//
// Stored weights are R w, so that (R w) . (R x) = w . x. The inverse c D1 H D2 is only for those
// who want the weights themselves. docs/formats.md has the signs.
#pragma once

#include <cstddef>

#include "cpuexec/codec_ops.h"

namespace hf::cpu {

/// out = R x.
///
/// block   128 or 256
/// x, out  (n), n a multiple of block; they may be the same memory, but not overlap otherwise
/// Order   times the first sign; butterflies (a, b) -> (a + b, a - b) of stride 1, 2, 4 ...; times
///         (c * second sign). One rounding each, the same bits at every level.
void rotate(Level level, size_t block, const float* x, size_t n, float* out);

/// out = R^-1 x, in the same order with the signs exchanged.
void unrotate(Level level, size_t block, const float* x, size_t n, float* out);

/// out[i] = x[i] / scale[i]: what an activation needs before R where weights have AWQ scales. x and
/// out may be the same memory.
inline void divide(const float* x, const float* scale, size_t n, float* out) {
    for (size_t i = 0; i < n; ++i) out[i] = x[i] / scale[i];
}

}  // namespace hf::cpu
