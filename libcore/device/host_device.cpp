#include "libcore/device/host_device.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "cpuexec/topology.h"
#include "libcore/base/error.h"
#include "libcore/ops/run_steps.h"

namespace hf {
namespace {

/// The processor's name as the kernel spells it.
std::string processor_name() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("model name"))
            if (const size_t colon = line.find(": "); colon != std::string::npos)
                return line.substr(colon + 2);
    return "CPU";
}

/// The highest level at or below `most` that has dots of its own for these activations: what really
/// multiplies.
cpu::Level serving_level(cpu::Level most, cpu::Activations activations) {
    for (size_t l = size_t(most); l > 0; --l)
        for (const Codec& codec : codecs())
            if (codec.cpu.dot[l][size_t(activations)]) return cpu::Level(l);
    return cpu::Level::scalar;
}

/// The steps themselves: what a pass works on comes with its tokens.
struct HostCapture : Capture {
    explicit HostCapture(std::span<const Step> list) : steps(list.begin(), list.end()) {}
    std::vector<Step> steps;
};

}  // namespace

HostDevice::HostDevice(const DeviceOptions& options)
    : memory_(options),
      pool_(options.threads ? options.threads : cpu::default_threads()),
      profile_(options.profile) {
    info_.kind = "host";
    info_.name = processor_name();
    info_.simulated = options.vram_bytes.has_value();
    info_.threads = pool_.size();
    info_.level = serving_level(options.level, options.activations);
    info_.activations = options.activations;
    info_.unified = options.unified;
    info_.can_map_host = options.can_map_host;
    info_.can_capture = true;
    info_.in_place = !info_.simulated;
    if (info_.simulated) work_beside();
}

Buffer HostDevice::allocate(uint64_t bytes, Residency residency) {
    return memory_.allocate(bytes, residency);
}

std::optional<Buffer> HostDevice::adopt(std::span<const std::byte> mapped, Residency residency) {
    if (residency == Residency::host_mapped && !info_.can_map_host) return std::nullopt;
    if (!info_.in_place && residency != Residency::host_plain) return std::nullopt;
    return Buffer::view(mapped, residency);
}

void HostDevice::upload(const Buffer& to, uint64_t offset, std::span<const std::byte> from) {
    HF_ASSERT(offset <= to.bytes() && from.size() <= to.bytes() - offset);
    wait();
    memory_.begin_upload();
    std::copy(from.begin(), from.end(), to.writable() + offset);
}

void HostDevice::download(const Buffer& from, uint64_t offset, std::span<std::byte> to) const {
    HF_ASSERT(offset <= from.bytes() && to.size() <= from.bytes() - offset);
    if (engine_) engine_->wait();
    std::copy_n(from.data() + offset, to.size(), to.begin());
}

void HostDevice::submit(std::span<const Step> steps, const Tokens& tokens) {
    Tokens here = tokens;
    here.level = info_.level;
    if (engine_)
        engine_->submit(steps, here);
    else
        run_steps(steps, here, pool_, profile_);
}

void HostDevice::wait() {
    if (engine_) engine_->wait();
}

std::unique_ptr<Capture> HostDevice::capture(std::span<const Step> steps, const Tokens&) {
    return std::make_unique<HostCapture>(steps);
}

void HostDevice::replay(const Capture& capture, const Tokens& tokens) {
    const auto* recorded = dynamic_cast<const HostCapture*>(&capture);
    HF_ASSERT(recorded);
    submit(recorded->steps, tokens);
}

void HostDevice::work_beside() {
    if (!engine_) engine_ = std::make_unique<HostEngine>(pool_, profile_);
}

}  // namespace hf
