#include "libcore/quantize/hfq_writer.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <bit>
#include <filesystem>
#include <limits>

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

/// Better said now than after an hour. What else fills the disk meanwhile, write() will report.
void check_room(const std::string& path, uint64_t bytes) {
    const std::string folder = std::filesystem::path(path).parent_path();
    struct statvfs disk;
    if (statvfs(folder.empty() ? "." : folder.c_str(), &disk) != 0) return;
    const uint64_t free = uint64_t(disk.f_bavail) * disk.f_frsize;
    if (free < bytes)
        throw Error(
            fmt::format("{}: will have {} bytes, but the disk has {} free; make room or "
                        "write to another one",
                        path, bytes, free));
}

}  // namespace

HfqWriter::HfqWriter(const std::string& path, bool replace, const HfqHeader& header)
    : file_(path, replace) {
    const std::string front = front_of(header);
    begin_.push_back(front.size());
    for (const HfqEntry& t : header.tensors) begin_.push_back(begin_.back() + t.bytes);
    check_room(path, file_bytes());
    file_.write_at(0, front.data(), front.size());
}

void HfqWriter::write(size_t tensor, uint64_t offset, std::span<const std::byte> bytes) {
    const uint64_t begin = begin_[tensor] + offset;
    HF_ASSERT(begin + bytes.size() <= begin_[tensor + 1]);
    file_.write_at(begin, bytes.data(), bytes.size());
    written_ += bytes.size();
}

void HfqWriter::finish() {
    HF_ASSERT(written_ == begin_.back() - begin_.front());
    file_.write_at(0, kMagic.data(), kMagic.size());
    file_.finish();
}

}  // namespace hf
