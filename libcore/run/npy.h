// NpyRows: a matrix of float32 written row by row to a .npy file, as numpy.load reads it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace hf {

/// Writes to "<path>.<process id>.part" beside the path and takes the path's name in finish(), so
/// the path never holds half a file, and what it held stays until then. Without finish() nothing
/// is left behind.
/// Errors  hf::Error naming the path and what the system said; a path that exists and is no regular
///         file is refused
/// Source  numpy.lib.format, version 1.0
class NpyRows {
  public:
    NpyRows(const std::string& path, uint64_t cols);
    ~NpyRows();
    NpyRows(const NpyRows&) = delete;
    NpyRows& operator=(const NpyRows&) = delete;

    void add(std::span<const float> row);  // (cols)
    void finish();                         // once, last

  private:
    std::string path_, part_;
    uint64_t cols_, rows_ = 0;
    int fd_;

    void write_all(const void* data, size_t bytes);
    [[noreturn]] void fail(const char* what) const;
};

}  // namespace hf
