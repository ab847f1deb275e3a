// HostDevice: the CPU as a device. It runs the same steps with the host functions of the ops, on
// the caller's thread, or on one of its own when it plays a card beside the CPU.
#pragma once

#include <memory>

#include "cpuexec/thread_pool.h"
#include "libcore/device/device.h"
#include "libcore/device/host_engine.h"
#include "libcore/device/host_memory.h"
#include "libcore/device/open_device.h"

namespace hf {

class HostDevice : public Device {
  public:
    explicit HostDevice(const DeviceOptions& options);

    const DeviceInfo& info() const override { return info_; }
    MemoryInfo memory() const override { return memory_.info(); }
    MemoryUse in_use() const override { return memory_.in_use(); }
    Buffer allocate(uint64_t bytes, Residency residency) override;
    std::optional<Buffer> adopt(std::span<const std::byte> mapped, Residency residency) override;
    void upload(const Buffer& to, uint64_t offset, std::span<const std::byte> from) override;
    void download(const Buffer& from, uint64_t offset, std::span<std::byte> to) const override;
    void submit(std::span<const Step> steps, const Tokens& tokens) override;
    void wait() override;
    std::unique_ptr<Capture> capture(std::span<const Step> steps, const Tokens& tokens) override;
    void replay(const Capture& capture, const Tokens& tokens) override;
    void work_beside() override;

  private:
    DeviceInfo info_;
    HostMemory memory_;
    cpu::ThreadPool pool_;
    StepProfile* profile_;
    std::unique_ptr<HostEngine> engine_;  // without one, submit returns when the steps are done
};

}  // namespace hf
