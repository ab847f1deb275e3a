// HostMemory: the memory of the host device, counted by residency.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "libcore/device/device.h"
#include "libcore/device/open_device.h"

namespace hf {

/// Hands out ordinary memory and keeps a registry of its owners. What is out is counted here,
/// independently of what the loader says. With a limit, memory of residency `device` ends exactly
/// there: the last byte is given, one more is refused.
class HostMemory : public BufferOwner {
  public:
    explicit HostMemory(const DeviceOptions& options);

    /// Errors  hf::Error with bytes wanted and bytes free, and who says how many are
    Buffer allocate(uint64_t bytes, Residency residency);
    /// Only what is in the registry is taken back; anything else, a view for instance, is our own
    /// mistake.
    void release(std::byte* data, uint64_t bytes, Residency residency) noexcept override;

    /// Counts an upload; the one that is to fail throws.
    void begin_upload();

    MemoryInfo info() const;
    const MemoryUse& in_use() const { return use_; }
    /// Whether the buffer's memory came from here, and not from a mapped file.
    bool owns(const Buffer& buffer) const { return owned_.contains(buffer.data()); }

  private:
    struct Owned {
        uint64_t bytes, slack, counted;
        Residency residency;
    };

    std::optional<uint64_t> limit_;  // of residency device
    bool can_map_host_;
    MemoryFaults faults_;
    uint32_t allocations_ = 0, uploads_ = 0;
    uint64_t device_bytes_ = 0;  // in use, never skewed
    MemoryUse use_;
    std::unordered_map<const std::byte*, Owned> owned_;

    void check_room(uint64_t bytes, Residency residency) const;
};

}  // namespace hf
