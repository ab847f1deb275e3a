#include "libcore/run/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

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
    : path_(path), part_(fmt::format("{}.{}.part", path, getpid())), cols_(cols) {
    struct stat old;
    if (stat(path.c_str(), &old) == 0 && !S_ISREG(old.st_mode))
        throw Error(fmt::format("{}: exists and is not a regular file; give another name", path));
    fd_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("cannot be created");
    try {
        write_all(header(0, cols).data(), kHeaderBytes);
    } catch (...) {  // no destructor runs after a constructor that threw
        close(fd_);
        unlink(part_.c_str());
        throw;
    }
}

NpyRows::~NpyRows() {
    if (fd_ < 0) return;
    close(fd_);
    unlink(part_.c_str());
}

void NpyRows::fail(const char* what) const {
    throw Error(fmt::format("{}: {}: {}", part_, what, std::strerror(errno)));
}

void NpyRows::write_all(const void* data, size_t bytes) {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t n = write(fd_, from, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("cannot be written");
        from += n;
        bytes -= size_t(n);
    }
}

void NpyRows::add(std::span<const float> row) {
    HF_ASSERT(row.size() == cols_);
    write_all(row.data(), row.size_bytes());
    ++rows_;
}

void NpyRows::finish() {
    if (lseek(fd_, 0, SEEK_SET) < 0) fail("cannot be rewound");
    write_all(header(rows_, cols_).data(), kHeaderBytes);
    if (rename(part_.c_str(), path_.c_str()) != 0) fail("cannot be renamed");
    close(std::exchange(fd_, -1));
}

}  // namespace hf
