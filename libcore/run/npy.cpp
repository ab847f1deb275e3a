#include "libcore/run/npy.h"

#include <bit>

#include <fmt/format.h>

#include "libcore/base/error.h"

namespace hf {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are written as they are in memory");

constexpr size_t kHeaderBytes = 128;  // a multiple of 64; room for any two 64-bit numbers

/// Magic, version 1.0, length of the dictionary, the dictionary, spaces, a newline.
std::string header(uint64_t rows, uint64_t cols) {
    std::string text("\x93NUMPY\x01\x00", 8);
    text += char(kHeaderBytes - 10);
    text += '\0';
    text +=
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, cols);
    text.resize(kHeaderBytes - 1, ' ');
    return text + '\n';
}

}  // namespace

NpyRows::NpyRows(const std::string& path, uint64_t cols)
    : file_(path, /*replace=*/true), cols_(cols) {
    file_.write_at(0, header(0, cols).data(), kHeaderBytes);
}

void NpyRows::add(std::span<const float> row) {
    HF_ASSERT(row.size() == cols_);
    file_.write_at(kHeaderBytes + rows_ * row.size_bytes(), row.data(), row.size_bytes());
    ++rows_;
}

void NpyRows::finish() {
    file_.write_at(0, header(rows_, cols_).data(), kHeaderBytes);
    file_.finish();
}

}  // namespace hf
