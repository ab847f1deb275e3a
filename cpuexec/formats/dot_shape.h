// What the integer dots of all levels share: how codes become terms.
//
// Vector code works on four rows (the streams of dot_f32.h) and four terms at once: 16 sums, term
// by term, of four rows each. Codes come as vectors of 64, in the order of the format's Prepare. A
// vector holds codes of 1, 2 or 4 terms, so a term has `lanes` = 4, 2 or 1 of its four 128-bit
// lanes; `parts` vectors on top of each other make those terms complete, and `lanes` such piles
// make four terms:
//     q6_k   term 16   1 lane    1 part           q8_0     term 32    2 lanes   1 part
//     q4_0   term 32   1 lane    2 parts          mq4g256  term 128   4 lanes   2 parts
//
// A format F brings, beside what block_ops.h asks for:
//     F::code_max    largest code as it is unpacked; 0: codes are signed bytes
//     F::unpack(isa, w, v, k, h, codes)     `parts` vectors of codes: pile k of the v-th four terms
//                                           of the step at w; where a vector has 32 bytes, half h
//     F::scales(isa, w, v, scale, zero)     of the v-th four terms of the steps at w[0] .. w[3]
// where isa is avx2::Isa or avx512::Isa, and a step is as many columns as blocks and units share.
// A format whose rows are more than their blocks says where these begin, and finds its scales
// wherever they are in the rows:
//     F::blocks_at(cols)                    bytes of a row of `cols` in front of its blocks
//     F::row_scales(isa, rows, scale)       what is one for a row, if there is such a thing
//     F::scales(isa, w, place, scale, zero) of the four terms of the steps at w[0] .. w[3]
#pragma once

#include <algorithm>

#include "cpuexec/activations.h"
#include "cpuexec/formats/dot_f32.h"

namespace hf::cpu {

template <class F>
struct Shape {
    static constexpr Prepare prepare = F::prepare;
    static constexpr size_t lanes = std::min(64, prepare.term / prepare.ways) / 16;
    static constexpr size_t parts = prepare.term / 16 / lanes;
    static constexpr size_t unit = unit_cols(prepare);
    static constexpr size_t step = std::max(unit, F::weights);
    static constexpr size_t step_bytes = step / F::weights * sizeof(typename F::Block);
    static_assert(step % unit == 0 && step % F::weights == 0);

    /// Bytes of a row's last columns, fewer than a step.
    static constexpr size_t rest_bytes(size_t cols) {
        return (cols + F::weights - 1) / F::weights * sizeof(typename F::Block);
    }
    /// Where part m of pile k finds its activations in a unit.
    static constexpr size_t codes_at(Activations a, size_t k, size_t m) {
        return (k * parts + m) * 64 * code_bytes(a);
    }
};

/// A step of four rows: where these begin, their row_scales(), and the step's first column.
template <class Floats>
struct Place {
    Rows rows;
    const Floats& row_scales;
    size_t column;
};

/// A format whose rows are more than their blocks.
template <class F>
concept HasFrame = requires {
    F::blocks_at(size_t{});
};

template <class F>
constexpr size_t blocks_at(size_t cols) {
    if constexpr (HasFrame<F>) return F::blocks_at(cols);
    return 0;
}

/// Four rows and as many prepared columns as it is compiled for; the same rows for all columns, in
/// tiles of 4, 2 and 1 as far as `most` allows, so that they stay in cache from tile to tile.
/// `tile(count)` is the function for so many columns.
using DotTile = void (*)(Rows rows, size_t cols, const float* x, size_t stride,
                         float (*y)[kStreams]);
void dot_by_tiles(DotTile (*tile)(size_t count), size_t most, const WeightView& W, size_t r0,
                  size_t r1, const Columns& X, float* y, size_t y_stride);

}  // namespace hf::cpu
