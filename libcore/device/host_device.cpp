#include "libcore/device/host_device.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include "cpuexec/topology.h"
#include "libcore/base/error.h"
#include "libcore/ops/run_steps.h"

namespace hf {
namespace {

constexpr std::align_val_t kAlignment{64};
/// From here on memory comes as fresh pages, which are zero without being touched.
constexpr uint64_t kWholePages = 1 << 20;

std::byte* allocate_zeroed(uint64_t bytes) {
    if (bytes >= kWholePages) {
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
    }
    void* p = operator new[](bytes, kAlignment, std::nothrow);
    return p ? static_cast<std::byte*>(std::memset(p, 0, bytes)) : nullptr;
}

/// A line of /proc/meminfo in bytes; 0 when there is none.
uint64_t meminfo(const std::string& key) {
    std::ifstream in("/proc/meminfo");
    std::string name, unit;
    for (uint64_t kib = 0; in >> name >> kib; std::getline(in, unit))
        if (name == key) return kib * 1024;
    return 0;
}

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

}  // namespace

HostDevice::HostDevice(const DeviceOptions& options)
    : pool_(options.threads ? options.threads : cpu::default_threads()) {
    info_ = {"host",
             processor_name(),
             false,
             pool_.size(),
             serving_level(options.level, options.activations),
             options.activations};
}

MemoryInfo HostDevice::memory() const {
    return {meminfo("MemTotal:"), meminfo("MemAvailable:")};
}

Buffer HostDevice::allocate(uint64_t bytes, Residency residency) {
    HF_ASSERT(bytes > 0);
    std::byte* data = allocate_zeroed(bytes);
    if (!data)
        throw Error(
            fmt::format("out of memory: {} bytes wanted, {} available; lower "
                        "memory.max_seq or use a smaller model",
                        bytes, memory().free));
    ++live_buffers_;
    return {data, bytes, residency, *this};
}

void HostDevice::release(std::byte* data, uint64_t bytes, Residency) noexcept {
    --live_buffers_;
    if (bytes >= kWholePages)
        munmap(data, bytes);
    else
        operator delete[](data, kAlignment);
}

std::optional<Buffer> HostDevice::adopt(std::span<const std::byte> mapped) {
    return Buffer::view(mapped, Residency::device);
}

void HostDevice::upload(const Buffer& to, uint64_t offset, std::span<const std::byte> from) {
    HF_ASSERT(offset <= to.bytes() && from.size() <= to.bytes() - offset);
    std::copy(from.begin(), from.end(), to.writable() + offset);
}

void HostDevice::download(const Buffer& from, uint64_t offset, std::span<std::byte> to) const {
    HF_ASSERT(offset <= from.bytes() && to.size() <= from.bytes() - offset);
    std::copy_n(from.data() + offset, to.size(), to.begin());
}

void HostDevice::submit(std::span<const Step> steps, const Tokens& tokens) {
    Tokens here = tokens;
    here.level = info_.level;
    here.activations = info_.activations;
    run_steps(steps, here, pool_);
}

}  // namespace hf
