// NpyRows: a matrix of float32 written row by row to a .npy file, as numpy.load reads it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "libcore/file/new_file.h"

namespace hf {

/// A NewFile: the path never holds half a matrix, and what it held stays until finish().
/// Errors  hf::Error: see NewFile
/// Source  numpy.lib.format, version 1.0
class NpyRows {
  public:
    NpyRows(const std::string& path, uint64_t cols);

    void add(std::span<const float> row);  // (cols)
    void finish();                         // once, last

  private:
    NewFile file_;
    uint64_t cols_, rows_ = 0;
};

}  // namespace hf
