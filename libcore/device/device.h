// Device: memory and an engine that runs steps. The host device is one like any other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "libcore/model/buffer.h"
#include "libcore/model/steps.h"
#include "libcore/model/tokens.h"

namespace hf {

struct DeviceInfo {
    std::string kind;        // "host", "hip"
    std::string name;        // of the processor
    bool simulated = false;  // plays a card; printed beside every number
    unsigned threads = 0;    // host device: of its pool
    cpu::Level level = cpu::Level::scalar;
    cpu::Activations activations = cpu::Activations::f32;

    // What a placement must know.
    bool unified = false;      // one memory for device and host: spilling frees nothing
    bool can_map_host = true;  // reads host_mapped memory
    bool can_capture = false;  // records steps once and runs them again
    bool in_place = false;  // matrices are read where the file is mapped, whatever their residency
    bool (*multiplies)(const Codec&) = [](const Codec&) { return true; };
};

struct MemoryInfo {
    uint64_t total = 0, free = 0;  // bytes
};

/// What a device has handed out and not taken back, as its allocator counts it.
struct MemoryUse {
    uint64_t bytes[kResidencies] = {};
    uint32_t buffers[kResidencies] = {};
    uint64_t slack_bytes = 0;  // behind host_mapped buffers, in none of the above

    uint32_t all_buffers() const { return buffers[0] + buffers[1] + buffers[2]; }
};

inline constexpr uint64_t kHostSlack = 1 << 20;

/// Steps that a device has recorded.
class Capture {
  public:
    virtual ~Capture() = default;
};

class Device {
  public:
    virtual ~Device() = default;
    virtual const DeviceInfo& info() const = 0;
    virtual MemoryInfo memory() const = 0;
    virtual MemoryUse in_use() const = 0;

    /// Zeroed memory, aligned to 64 bytes at least. Behind host_mapped memory kHostSlack more bytes
    /// are mapped and zero, for kernels that read past an end.
    /// Errors  hf::Error with bytes wanted and bytes free
    virtual Buffer allocate(uint64_t bytes, Residency residency) = 0;
    /// A view of file-mapped bytes, where weights of that residency can be read in place.
    virtual std::optional<Buffer> adopt(std::span<const std::byte> mapped, Residency residency) = 0;
    virtual void upload(const Buffer& to, uint64_t offset, std::span<const std::byte> from) = 0;
    virtual void download(const Buffer& from, uint64_t offset, std::span<std::byte> to) const = 0;

    /// Starts the steps on these tokens, in order, behind those that were submitted before; may
    /// return before they are done. Arena and state of `tokens` are this device's. Everything that
    /// steps and tokens point at stays as it is until wait().
    virtual void submit(std::span<const Step> steps, const Tokens& tokens) = 0;
    /// Returns when everything that was submitted has finished. Uploads and downloads wait too.
    virtual void wait() = 0;
    /// Records the steps, as they would be for these tokens, and runs none. Only CaptureGate
    /// (exec/capture_gate.h) may ask: it knows what must not be recorded.
    virtual std::unique_ptr<Capture> capture(std::span<const Step> steps, const Tokens& tokens) = 0;
    /// Starts what was recorded, as submit() does. As many tokens, commits and logits as then, on
    /// the same arena and state. The capture stays as it is until wait().
    virtual void replay(const Capture& capture, const Tokens& tokens) = 0;
    /// From now on submit() returns at once: somebody else wants to compute at the same time.
    /// A card does so anyway.
    virtual void work_beside() {}
};

}  // namespace hf
