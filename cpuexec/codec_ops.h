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

/// Prepared activations: `count` columns. For Activations::f32 these are plain vectors (cols).
struct Columns {
    const float* f32;  // column t starts at f32 + t * stride
    size_t stride;     // floats
    size_t count;
};

/// What the integer preparations of a format need; read by nobody while only f32 dots exist.
struct Prepare {
    uint16_t group;  // activations per scale: 32 or 128; 0: f32 only
    bool offsets;    // the format has a zero or a minimum, so sums per group are kept
};

/// Writes row `row` of W as float32 (cols). This is the definition of a format: an unfused
/// multiply and add per weight, no SIMD, bit-exact with the golden vectors.
using DecodeRow = void (*)(const WeightView& W, size_t row, float* out);

/// Rows [r0, r1) of W times all columns of X: y[t * y_stride + r - r0] = dot(W[r], X[t]).
/// Order (f32): element i of a row goes to lane i % 8 by fma, lanes are folded by fold8(); the
/// same bits at every level, for one column or many.
using Dot = void (*)(const WeightView& W, size_t r0, size_t r1, const Columns& X, float* y,
                     size_t y_stride);

/// A format's CPU functions. dot[level][activations] is null where the next lower level serves.
struct CpuOps {
    Prepare prepare;
    DecodeRow decode_row;
    std::array<std::array<Dot, kActivations>, kLevels> dot;
    bool f32_only;  // integers make no sense for this format
};

/// The dot of the highest level at or below `level`; null when the format has none.
inline Dot pick_dot(const CpuOps& ops, Level level, Activations activations) {
    for (size_t l = size_t(level) + 1; l-- > 0;) {
        if (l == size_t(Level::avxvnni) && level > Level::avxvnni) continue;  // see Level
        if (Dot dot = ops.dot[l][size_t(activations)]) return dot;
    }
    return nullptr;
}

}  // namespace hf::cpu
