// ByteReader: binary headers read from front to back, field by field, never beyond their end.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "libcore/file/message.h"

namespace hf {

/// Where the bytes of a header stop, as messages put it.
struct HeaderEnd {
    std::string_view what;    // "the file ends", "the data begin"
    std::string_view advice;  // "fetch it again", "damaged"
};

/// A position in a header. Fields are little-endian and not aligned. Offsets count from the front
/// of `bytes`, which is the front of the file. Errors  hf::Error naming path, field, position, and
/// how many bytes are missing
class ByteReader {
  public:
    /// All must outlive the reader.
    ByteReader(std::span<const std::byte> bytes, std::string_view path, HeaderEnd end)
        : bytes_(bytes), path_(path), end_(end) {}

    uint64_t at() const { return at_; }
    uint64_t left() const { return bytes_.size() - at_; }

    std::span<const std::byte> take(uint64_t count, std::string_view what) {
        if (count > left())
            fail_file(path_, "{} takes {} bytes at byte {}, but {} at {}: {} bytes are missing; {}",
                      what, count, at_, end_.what, bytes_.size(), count - left(), end_.advice);
        const auto taken = bytes_.subspan(at_, count);
        at_ += count;
        return taken;
    }

    std::string_view text(uint64_t count, std::string_view what) {
        const auto taken = take(count, what);
        return {reinterpret_cast<const char*>(taken.data()), taken.size()};
    }

    template <class T>
    T number(std::string_view what) {
        T value;
        std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
        return value;
    }

  private:
    std::span<const std::byte> bytes_;
    std::string_view path_;
    HeaderEnd end_;
    uint64_t at_ = 0;
};

}  // namespace hf
