// Shape: rows and cols of a matrix.
#pragma once

#include <cstdint>

namespace hf {

/// (rows, cols), slowest first: y = W x has y (rows), x (cols). A vector is one row.
struct Shape {
    uint64_t rows = 0, cols = 0;
    bool operator==(const Shape&) const = default;
};

}  // namespace hf
