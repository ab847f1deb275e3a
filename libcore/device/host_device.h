// HostDevice: the CPU as a device. It runs the same steps with the host functions of the ops.
#pragma once

#include <memory>

#include "cpuexec/thread_pool.h"
#include "libcore/device/device.h"
#include "libcore/device/open_device.h"

namespace hf {

class HostDevice : public Device {
  public:
    explicit HostDevice(const DeviceOptions& options);

    const DeviceInfo& info() const override { return info_; }
    MemoryInfo memory() const override;
    Buffer allocate(uint64_t bytes, Residency residency) override;
    std::optional<Buffer> adopt(std::span<const std::byte> mapped) override;
    void upload(const Buffer& to, uint64_t offset, std::span<const std::byte> from) override;
    void download(const Buffer& from, uint64_t offset, std::span<std::byte> to) const override;
    void submit(std::span<const Step> steps, const Tokens& tokens) override;
    void wait() override {}  // submit returns when the steps are done
    void release(std::byte* data, uint64_t bytes, Residency residency) noexcept override;

    /// Buffers that are out and not yet released. For tests.
    uint64_t live_buffers() const { return live_buffers_; }

  private:
    DeviceInfo info_;
    cpu::ThreadPool pool_;
    uint64_t live_buffers_ = 0;
};

}  // namespace hf
