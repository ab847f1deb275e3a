// What the products of panels share, whatever multiplies them: the walk over packed rows.
#pragma once

#include <algorithm>
#include <cstring>

#include "cpuexec/formats/batch.h"

namespace hf::cpu {

/// Asks for the rows that come next, a few lines with each turn, which is a term of a panel and a
/// tile of columns: many at once would wait for each other.
struct ReadAhead {
    const std::byte *next, *row_end, *end;
    size_t bytes, row_bytes;  // of a row: asked for, and from row to row
    size_t lines;             // of a turn

    ReadAhead(const std::byte* first, size_t rows, size_t of_row, size_t distance, size_t turns)
        : next(first),
          row_end(first + of_row),
          end(rows ? first + (rows - 1) * distance + of_row : first),
          bytes(of_row),
          row_bytes(distance),
          lines(rows * (of_row / 64 + 1) / turns + 1) {}
    HF_INLINE void turn() {
        for (size_t i = 0; i < lines && next < end; ++i) {
            __builtin_prefetch(next, 0, 2);
            next += 64;
            if (next < row_end) continue;
            next = row_end + row_bytes - bytes;
            row_end += row_bytes;
        }
    }
};

/// 16 rows, from r on; behind r1 the last one is repeated.
struct PanelRows {
    const std::byte* at[kPanelRows];
    std::byte ends[kPanelRows][kMostStepBytes];

    void begin(const WeightView& W, size_t r, size_t r1) {
        for (size_t i = 0; i < kPanelRows; ++i)
            at[i] = W.base + std::min(r + i, r1 - 1) * W.row_bytes;
    }
    void advance(size_t bytes) {
        for (const std::byte*& row : at) row += bytes;
    }
    /// Copies a row's end, less than a step, since nothing behind it may be read.
    void copy_ends(const PanelShape& shape, size_t cols) {
        const size_t bytes =
            (cols + shape.block_weights - 1) / shape.block_weights * shape.block_bytes;
        for (size_t i = 0; i < kPanelRows; ++i) {
            std::memcpy(ends[i], at[i], bytes);
            std::memset(ends[i] + bytes, 0, shape.step_bytes() - bytes);
            at[i] = ends[i];
        }
    }
};

/// Columns [0, cols) of what is left of 16 rows, a panel's worth at most.
inline void unpack_panel(const PanelShape& shape, UnpackPanel unpack, size_t cols, PanelRows& rows,
                         Panel& panel) {
    for (size_t unit = 0; cols > 0; unit += shape.step / shape.unit) {
        if (cols < shape.step) rows.copy_ends(shape, cols);
        unpack(rows.at, unit, panel);
        rows.advance(shape.step_bytes());
        cols -= std::min(cols, shape.step);
    }
}

}  // namespace hf::cpu
