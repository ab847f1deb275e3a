// Activations as integers: what the i16 and int8 dots multiply packed weights with.
//
// A column is cut into groups of activations that share a scale d; group and term are the format's
// (codec_ops.h, Prepare):
//     L = 32639 (i16), 127 (int8)       d = max|x| / L            q = rint(x / d), |q| <= L
// with ties to even. Where d is below the smallest normal float, d and q are 0. Where an x is
// infinite or no number, d is a NaN and q is 0: the fault shows in every product.
// 32639 = 256 * 127 + 127 is the largest number of two signed bytes: q = 256 * high + low.
//
// A prepared column is a run of units of four terms; what is missing in the last one is zero:
//     codes    64 positions after 64 positions, in the order of Prepare: 64 high bytes, then (i16)
//              64 low bytes
//     scales   float[4][4]    d of each term, four times: one for each row that is multiplied
//     sums     [4][4]         with S the sum of q over the term: float d * float(S) where the
//                             format has zeros, else int32 offset * S
#pragma once

#include <cstddef>

#include "cpuexec/codec_ops.h"

namespace hf::cpu {

/// Columns of a unit.
constexpr size_t unit_cols(const Prepare& p) {
    return 4 * size_t(p.term);
}

/// Bytes of a code.
constexpr size_t code_bytes(Activations a) {
    return a == Activations::i16 ? 2 : 1;
}

/// Where the scales and the sums of a unit begin, and where it ends. A multiple of 64.
constexpr size_t scales_at(const Prepare& p, Activations a) {
    return unit_cols(p) * code_bytes(a);
}
constexpr size_t sums_at(const Prepare& p, Activations a) {
    return scales_at(p, a) + 16 * sizeof(float);
}
constexpr size_t unit_bytes(const Prepare& p, Activations a) {
    return sums_at(p, a) + 16 * sizeof(float);
}

/// The column that a position of a unit holds, both counted from the unit's first.
constexpr size_t column_at(const Prepare& p, size_t position) {
    const size_t block = 64 * size_t(p.ways), in = position % block, w = in / 64, b = in % 64;
    return position - in + b / p.chunk * p.chunk * p.ways + w * p.chunk + b % p.chunk;
}

/// Words of the size of a float that a prepared column takes.
size_t prepared_floats(const Prepare& p, Activations a, size_t cols);

/// Prepares a column, or a part of one that begins with a unit.
///
/// p      of a format that has integers
/// a      i16 or int8
/// x      (cols) float32
/// out    (prepared_floats()), overwritten
/// Order  none: exact or rounded once, the same bytes at every level
void prepare(Level level, const Prepare& p, Activations a, const float* x, size_t cols, float* out);

}  // namespace hf::cpu
