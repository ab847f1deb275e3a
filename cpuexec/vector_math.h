// Vector math: what a token passes through besides products with weights.
#pragma once

#include <cstddef>

#include "cpuexec/codec_ops.h"

namespace hf::cpu {

/// out[i] += sum over j of weights[i][j] * values[j], each a row of `cols` numbers.
///
/// weights  (rows) pointers to (terms)
/// values   (terms, cols), rows `stride` floats apart
/// out      (rows) pointers to (cols) that overlap nothing
/// Order    every number of out takes its terms by fma, j upwards: many rows or terms at once, or
///          one by one, give the same bits
struct WeightedRows {
    size_t rows, terms, cols;
    const float* const* weights;
    const float* values;
    size_t stride;
    float* const* out;
};

/// out[i][j] = the product of x[i] and y[j], rows of `cols` numbers.
///
/// x      (rows) pointers to (cols)
/// y      (others, cols), rows `stride` floats apart
/// out    (rows) pointers to (others)
/// Order  number c goes to lane c % 16 by fma, c upwards, folded by fold16()
struct RowProducts {
    size_t rows, others, cols;
    const float* const* x;
    const float* y;
    size_t stride;
    float* const* out;
};

/// A matrix x that changes and is read on the way, once: x[r] = decay x[r] + u[r] v for each row,
/// and of what that makes out[i] += sum over r of weights[i][r] x[r].
///
/// x        (rows, cols)
/// u        (rows)
/// v        (cols)
/// weights  (2) pointers to (rows)
/// out      (2) pointers to (cols) that overlap nothing
/// Order    as scale, then add_weighted of one term, then add_weighted of the rows: the same bits
struct UpdatedMatrix {
    size_t rows, cols;
    float* x;
    float decay;
    const float *u, *v;
    const float* weights[2];
    float* out[2];
};

/// The functions, one set per instruction level, with the same bits in each.
///
/// Vectors are float32 (n), any n, at any address; out may be one of the inputs, but not overlap
/// them otherwise. Products and sums are rounded one by one, except where fma is said. Sums over a
/// row go to 8 lanes, element i to lane i % 8, folded by fold8().
///
/// exp has an error below 1 unit in the last place, denormal results included. It is 1 at 0, 0
/// below -104, infinite above 89, and NaN for NaN.
struct VectorMath {
    float (*dot)(const float* a, const float* b, size_t n);
    float (*sum)(const float* x, size_t n);
    /// The largest number of x, NaNs passed over; -infinity when there is none.
    float (*largest)(const float* x, size_t n);

    /// out = a + b
    void (*add)(const float* a, const float* b, size_t n, float* out);
    /// out = s x
    void (*scale)(const float* x, float s, size_t n, float* out);
    /// out = a * b / (1 + exp(-b)): a silu(b)
    void (*mul_silu)(const float* a, const float* b, size_t n, float* out);
    /// out = a / (1 + exp(-b)): a sigmoid(b)
    void (*mul_sigmoid)(const float* a, const float* b, size_t n, float* out);
    /// out = exp(s x - shift)
    void (*exp_shifted)(const float* x, float s, float shift, size_t n, float* out);
    /// out = x / sqrt(dot(x, x) / n + eps) * w
    void (*rmsnorm)(const float* x, const float* w, float eps, size_t n, float* out);
    /// out[c] = silu(sum over j of w[c][j] x[j][c]), j upwards; w is (n, taps), x (taps) pointers.
    void (*conv_silu)(const float* w, const float* const* x, size_t taps, size_t n, float* out);

    void (*multiply)(const RowProducts& products);
    void (*add_weighted)(const WeightedRows& sums);
    void (*update)(const UpdatedMatrix& matrix);
};

/// The set of the highest level at or below `level`: plain, AVX2, AVX-512.
const VectorMath& vector_math(Level level);

}  // namespace hf::cpu
