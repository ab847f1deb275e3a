#include "libcore/quantize/hfq_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "libcore/base/error.h"

namespace hf {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are written as they are in memory");

constexpr uint64_t kHeaderBytes = 32, kAlignment = 4096;
constexpr std::string_view kMagic = "HFQM", kUnfinishedMagic = "HFQ!";

template <class T>
void put(std::string& out, uint64_t value) {
    const T narrow = T(value);
    out.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
}

template <class T>
void check_limit(const HfqEntry& t, const char* what, uint64_t value) {
    if (value > std::numeric_limits<T>::max())
        throw Error(fmt::format("tensor '{}': {} is {}, but HFQ files hold at most {}",
                                t.name.substr(0, 100), what, value, std::numeric_limits<T>::max()));
}

void put_entry(std::string& out, const HfqEntry& t) {
    HF_ASSERT(t.codec->ids.hfq >= 0);
    check_limit<uint16_t>(t, "the length of the name", t.name.size());
    put<uint16_t>(out, t.name.size());
    out += t.name;
    put<uint8_t>(out, uint64_t(t.codec->ids.hfq));
    put<uint8_t>(out, t.dims.size());
    for (const uint64_t dim : t.dims) {
        check_limit<uint32_t>(t, "a dimension", dim);
        put<uint32_t>(out, dim);
    }
    put<uint32_t>(out, t.codec->group == 1 ? 0 : t.codec->group);
    put<uint64_t>(out, t.bytes);
}

/// All bytes in front of the payloads.
std::string front_of(const HfqHeader& header) {
    std::string index;
    put<uint32_t>(index, header.tensors.size());
    for (const HfqEntry& t : header.tensors) put_entry(index, t);
    const uint64_t used = kHeaderBytes + header.metadata.size() + index.size();
    const uint64_t data = (used + kAlignment - 1) / kAlignment * kAlignment;

    std::string out(kUnfinishedMagic);
    put<uint32_t>(out, 1);  // version
    put<uint32_t>(out, header.arch_id);
    put<uint32_t>(out, header.tensors.size());
    put<uint64_t>(out, kHeaderBytes);
    put<uint64_t>(out, data);
    out += header.metadata + index;
    out.resize(data);
    return out;
}

std::string folder_of(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path();
    return folder.empty() ? "." : folder;
}

void check_target(const std::string& path, bool replace) {
    struct stat old;
    if (lstat(path.c_str(), &old) != 0) return;
    if (!S_ISREG(old.st_mode))
        throw Error(fmt::format("{}: exists and is not a regular file; give another name", path));
    if (!replace) throw Error(fmt::format("{}: exists; --force replaces it", path), Fault::refused);
}

}  // namespace

HfqWriter::HfqWriter(const std::string& path, bool replace, const HfqHeader& header)
    : path_(path), part_(fmt::format("{}.{}.part", path, getpid())), replace_(replace) {
    const std::string front = front_of(header);
    begin_.push_back(front.size());
    for (const HfqEntry& t : header.tensors) begin_.push_back(begin_.back() + t.bytes);
    check_target(path, replace);
    check_room();
    fd_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("cannot be created");
    try {
        write_at(0, front.data(), front.size());
    } catch (...) {  // no destructor runs after a constructor that threw
        close(fd_);
        unlink(part_.c_str());
        throw;
    }
}

HfqWriter::~HfqWriter() {
    if (fd_ < 0) return;
    close(fd_);
    unlink(part_.c_str());
}

void HfqWriter::fail(const char* what) const {
    throw Error(fmt::format("{}: {}: {}", part_, what, std::strerror(errno)));
}

/// Better said now than after an hour. What else fills the disk meanwhile, write() will report.
void HfqWriter::check_room() const {
    struct statvfs disk;
    if (statvfs(folder_of(path_).c_str(), &disk) != 0) return;
    const uint64_t free = uint64_t(disk.f_bavail) * disk.f_frsize;
    if (free < file_bytes())
        throw Error(
            fmt::format("{}: will have {} bytes, but the disk has {} free; make room or "
                        "write to another one",
                        path_, file_bytes(), free));
}

void HfqWriter::write_at(uint64_t offset, const void* data, size_t bytes) {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t n = pwrite(fd_, from, bytes, off_t(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("cannot be written");
        from += n;
        offset += uint64_t(n);
        bytes -= size_t(n);
    }
}

void HfqWriter::write(size_t tensor, uint64_t offset, std::span<const std::byte> bytes) {
    const uint64_t begin = begin_[tensor] + offset;
    HF_ASSERT(begin + bytes.size() <= begin_[tensor + 1]);
    write_at(begin, bytes.data(), bytes.size());
    written_ += bytes.size();
}

/// Without leave to replace, a file that appeared meanwhile stays: link() does not overwrite. Where
/// there are no links, the check at the start has to do.
void HfqWriter::take_name() {
    if (!replace_) {
        if (link(part_.c_str(), path_.c_str()) == 0) {
            unlink(part_.c_str());
            return;
        }
        if (errno == EEXIST) check_target(path_, false);
    }
    if (rename(part_.c_str(), path_.c_str()) != 0) fail("cannot be renamed");
}

void HfqWriter::finish() {
    HF_ASSERT(written_ == begin_.back() - begin_.front());
    write_at(0, kMagic.data(), kMagic.size());
    if (fsync(fd_) != 0) fail("cannot be synced");
    take_name();
    close(std::exchange(fd_, -1));
    if (const int folder = open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        folder >= 0) {
        fsync(folder);  // not every file system can; the file itself is safe
        close(folder);
    }
}

}  // namespace hf
