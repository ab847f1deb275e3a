// The CPU functions of every format, one file each. The table of formats is in libcore/codec.
#pragma once

#include "cpuexec/codec_ops.h"

namespace hf::cpu {

// Constant-initialised: they can be read from anybody's initialiser.
extern const CpuOps bf16, f16, f32, q8_0;

/// Packs n floats as n / 32 blocks of Q8_0 (34 bytes each) at any address.
///
/// x       (n) float32, n a multiple of 32
/// out     n / 32 * 34 bytes, overwritten
/// Rule    scale = max|x| / 127, q = x / scale rounded, ties away from zero. The scale is stored
///         truncated to f16, and q is chosen by the scale before truncation.
/// A block with an infinity or a NaN gets a NaN as scale, so that the fault stays visible.
/// Source  docs/formats.md, q8_0
void encode_q8_0(const float* x, size_t n, std::byte* out);

}  // namespace hf::cpu
