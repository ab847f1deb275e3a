// Buffer: memory that a device made, or a view of a mapped file that it reads in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/model/lane.h"

namespace hf {

/// Where bytes live. Placement decides once; everything else reads it from the weight.
enum class Residency : uint8_t {
    device,       // VRAM (on the host device: its own memory, or the mapped file in place)
    host_mapped,  // pinned host memory that the device reads over the link
    host_plain,   // ordinary host memory that only the CPU reads
};
inline constexpr size_t kResidencies = 3;

/// Whether a lane may touch memory of that kind.
constexpr bool can_read(Lane lane, Residency residency) {
    if (residency == Residency::host_mapped) return true;
    return (residency == Residency::device) == (lane == Lane::device);
}

/// Who takes memory back.
class BufferOwner {
  public:
    virtual void release(std::byte* data, uint64_t bytes, Residency residency) noexcept = 0;

  protected:
    ~BufferOwner() = default;
};

/// Owns memory of a device; moves, never copies. A view owns nothing and must not outlive the
/// mapping. `data` is an address for the device (on the host device: ordinary memory).
class Buffer {
  public:
    Buffer() = default;
    Buffer(std::byte* data, uint64_t bytes, Residency residency, BufferOwner& owner)
        : data_(data), bytes_(bytes), residency_(residency), owner_(&owner) {}
    /// A view of bytes that somebody else owns and nobody writes.
    static Buffer view(std::span<const std::byte> bytes, Residency residency) {
        Buffer b;
        b.data_ = const_cast<std::byte*>(bytes.data());  // writable() refuses views
        b.bytes_ = bytes.size();
        b.residency_ = residency;
        return b;
    }
    Buffer(Buffer&& other) noexcept { *this = std::move(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(residency_, other.residency_);
        std::swap(owner_, other.owner_);
        return *this;
    }
    ~Buffer() {
        if (owner_) owner_->release(data_, bytes_, residency_);
    }

    const std::byte* data() const { return data_; }
    std::byte* writable() const {
        HF_ASSERT(owner_ != nullptr);
        return data_;
    }
    uint64_t bytes() const { return bytes_; }
    Residency residency() const { return residency_; }
    bool in_place() const { return data_ != nullptr && owner_ == nullptr; }

  private:
    std::byte* data_ = nullptr;
    uint64_t bytes_ = 0;
    Residency residency_ = Residency::device;
    BufferOwner* owner_ = nullptr;
};

}  // namespace hf
