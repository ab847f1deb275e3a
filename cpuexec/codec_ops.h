// The functions that a format supplies to the CPU engine, and the views they work on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hf::cpu {

/// Instruction levels, lowest first; a level implies the ones before it, except that many CPUs with
/// avx512vnni lack avxvnni.
enum class Level : uint8_t { scalar, avx2, avxvnni, avx512vnni, amx };
inline constexpr size_t kLevels = 5;

/// How activations are prepared before they meet packed weights.
enum class Activations : uint8_t { f32, i16, int8 };
inline constexpr size_t kActivations = 3;

/// A packed weight matrix (rows, cols), row-major, in memory that somebody else owns.
/// base may have any alignment, and nothing behind its last row may be read.
struct WeightView {
    const std::byte* base;
    size_t rows, cols;
    size_t row_bytes;          // distance between rows
    const std::byte* sidecar;  // a codebook or second region of the whole matrix, or null
};

/// Prepared activations: `count` columns. For Activations::f32 these are plain vectors (cols), else
/// what prepare() of activations.h wrote (prepared_floats() words of the size of a float).
struct Columns {
    const float* data;  // column t starts at data + t * stride
    size_t stride;      // floats
    size_t count;
};

/// How the integer dots of a format want activations; activations.h has the layout. Formats with
/// equal ones share what was prepared.
struct Prepare {
    uint16_t group = 0;  // activations that share a scale: 32 or 128; 0: f32 only
    uint16_t term = 0;   // weights that share a scale, and so one integer sum: 16, 32, 64 or 128
    uint8_t ways = 1;    // order of codes: position 64 w + b of 64 * ways columns holds column
    uint8_t chunk = 64;  // (b / chunk) * chunk * ways + w * chunk + b % chunk
    int16_t offset = 0;  // what all codes are less as they are unpacked
    bool zeros = false;  // the format has a zero or a minimum

    constexpr bool has_integers() const { return group != 0; }
    bool operator==(const Prepare&) const = default;
};

/// Writes row `row` of W as float32 (cols). This is the definition of a format: an unfused
/// multiply and add per weight, no SIMD, bit-exact with the golden vectors.
using DecodeRow = void (*)(const WeightView& W, size_t row, float* out);

/// Rows [r0, r1) of W times all columns of X: y[t * y_stride + r - r0] = dot(W[r], X[t]).
/// Order, the same bits at every level, for one column or many; only NaN payloads may differ:
/// f32       element i of a row goes to lane i % 16 by fma, lanes are folded by fold16()
/// i16, int8 term g is the exact sum I of (code - offset) * q over weights with one scale s (and
///           zero z); d and q are activations.h's, S the sum of q. Term by term, a lane of four:
///               if the format has zeros: a[g % 4] = fma(z, d * float(S), a[g % 4])
///               a[g % 4] = fma(float(I), s * d, a[g % 4])
///           and at the end (a[0] + a[2]) + (a[1] + a[3]).
using Dot = void (*)(const WeightView& W, size_t r0, size_t r1, const Columns& X, float* y,
                     size_t y_stride);

/// From kManyColumns on, a dot may prepare for its rows what kManyRows of them are worth.
inline constexpr size_t kManyColumns = 5, kManyRows = 128;

/// A format's CPU functions. dot[level][activations] is null where the next lower level serves.
struct CpuOps {
    Prepare prepare;
    DecodeRow decode_row;
    DecodeRow decode_row_avx2;  // the same bits
    std::array<std::array<Dot, kActivations>, kLevels> dot;
};

/// What the format is multiplied with where `wanted` is asked for: integers, if it has more than
/// the plain dot of them, else f32. Does not depend on the level, and so no result does.
inline Activations pick_activations(const CpuOps& ops, Activations wanted) {
    return ops.dot[size_t(Level::avx2)][size_t(wanted)] ? wanted : Activations::f32;
}

inline DecodeRow pick_decode(const CpuOps& ops, Level level) {
    return level >= Level::avx2 ? ops.decode_row_avx2 : ops.decode_row;
}

/// The dot of the highest level at or below `level`; null when the format has none.
inline Dot pick_dot(const CpuOps& ops, Level level, Activations activations) {
    for (size_t l = size_t(level) + 1; l-- > 0;) {
        if (l == size_t(Level::avxvnni) && level > Level::avxvnni) continue;  // see Level
        if (Dot dot = ops.dot[l][size_t(activations)]) return dot;
    }
    return nullptr;
}

}  // namespace hf::cpu
