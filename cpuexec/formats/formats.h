// The CPU functions of every format, one file per family. The table of formats, with the names that
// containers give them, is in libcore/codec; formats that differ only in rotation share a name
// here.
#pragma once

#include "cpuexec/codec_ops.h"

namespace hf::cpu {

// Constant-initialised: they can be read from anybody's initialiser.
extern const CpuOps f32, f16, bf16;

// affine.cpp: codes of 2 to 6 bits
extern const CpuOps affine2_g128, affine2_g256, affine3_g128, affine3_g256, affine4_g128,
    affine4_g256, affine5_g256, affine6_g256;
extern const CpuOps affine2_v2, affine3_v2, affine4_v2, affine5_v2, affine6_v2;
extern const CpuOps mq4c, mq4_g128_v2, q4_f16_g64;

// codebook.cpp
extern const CpuOps lloyd2, lloyd3, lloyd4, gl2, gl3, affine4_v2_levels;

// fp4.cpp, e8.cpp
extern const CpuOps fp4_ue8m0, fp4_e4m3, fp4_lloyd, mxfp4, nvfp4;
extern const CpuOps e8_4, e8_3, e8_2, e8_4_soa;

// q8_0.cpp, q8.cpp, ternary.cpp
extern const CpuOps q8_0, q8hfq, mq8, ternary, binary;

// q4_q5.cpp, k_quants.cpp, iq4.cpp
extern const CpuOps q4_0, q4_1, q5_0, q5_1;
extern const CpuOps q2_k, q3_k, q4_k, q5_k, q6_k;
extern const CpuOps iq4_nl, iq4_xs;

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
