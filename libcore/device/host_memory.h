// HostMemory: the memory of the host device, counted by residency.
#pragma once

#include <cstdint>

#include "libcore/device/device.h"

namespace hf {

/// Hands out ordinary memory. What is out is counted here, independently of what the loader says.
class HostMemory : public BufferOwner {
  public:
    Buffer allocate(uint64_t bytes, Residency residency);
    void release(std::byte* data, uint64_t bytes, Residency residency) noexcept override;

    MemoryInfo info() const;
    const MemoryUse& in_use() const { return use_; }

  private:
    MemoryUse use_;
};

}  // namespace hf
