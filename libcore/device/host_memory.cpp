#include "libcore/device/host_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <new>
#include <string>

#include "libcore/base/checked.h"
#include "libcore/base/error.h"
#include "libcore/device/host_ram.h"

namespace hf {
namespace {

constexpr std::align_val_t kAlignment{64};
/// From here on memory comes as fresh pages, which are zero without being touched. Large ones,
/// where the system has any: one thread then reads up to twice as much a second, for there are 512
/// times fewer addresses to be translated.
constexpr uint64_t kWholePages = 1 << 20;

std::byte* take_zeroed(uint64_t bytes) {
    if (bytes >= kWholePages) {
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return nullptr;
        madvise(p, bytes, MADV_HUGEPAGE);  // may fail
        return static_cast<std::byte*>(p);
    }
    void* p = operator new[](bytes, kAlignment, std::nothrow);
    return p ? static_cast<std::byte*>(std::memset(p, 0, bytes)) : nullptr;
}

void give_back(std::byte* data, uint64_t bytes) {
    if (bytes >= kWholePages)
        munmap(data, bytes);
    else
        operator delete[](data, kAlignment);
}

uint64_t meminfo(const std::string& name) {
    return read_named_number(RamPaths().meminfo, name).value_or(0) * 1024;
}

}  // namespace

HostMemory::HostMemory(const DeviceOptions& options)
    : limit_(options.vram_bytes), can_map_host_(options.can_map_host), faults_(options.faults) {}

void HostMemory::check_room(uint64_t bytes, Residency residency) const {
    if (residency == Residency::host_mapped && !can_map_host_)
        throw Error(
            "this device cannot read host memory; set memory.gpu_layer_budget to all layers");
    if (residency != Residency::device || !limit_) return;
    const uint64_t free = *limit_ - device_bytes_;
    if (bytes > free)
        throw Error(
            fmt::format("out of device memory: {} bytes wanted, {} of {} free; lower "
                        "memory.gpu_layer_budget or memory.max_seq",
                        bytes, free, *limit_));
}

Buffer HostMemory::allocate(uint64_t bytes, Residency residency) {
    HF_ASSERT(bytes > 0);
    allocations_ += 1;
    if (allocations_ == faults_.fail_allocation)
        throw Error(
            fmt::format("allocation {} of {} bytes fails, as was asked for", allocations_, bytes));
    check_room(bytes, residency);
    const uint64_t slack = residency == Residency::host_mapped ? kHostSlack : 0;
    const auto whole = checked_add(bytes, slack);
    std::byte* data = whole ? take_zeroed(*whole) : nullptr;
    if (!data) {
        const HostRam ram = read_host_ram();
        throw Error(
            fmt::format("out of memory: {} bytes and {} of padding wanted, {} available "
                        "({}); lower memory.max_seq or use a smaller model",
                        bytes, slack, ram.available.value_or(0), ram.limited_by));
    }
    const uint64_t counted = bytes + (allocations_ == faults_.skew_allocation);
    owned_[data] = {bytes, slack, counted, residency};
    if (residency == Residency::device) device_bytes_ += bytes;
    use_.bytes[size_t(residency)] += counted;
    use_.buffers[size_t(residency)] += 1;
    use_.slack_bytes += slack;
    return {data, bytes, residency, *this};
}

void HostMemory::release(std::byte* data, uint64_t bytes, Residency residency) noexcept {
    const auto found = owned_.find(data);
    HF_ASSERT(found != owned_.end());
    const Owned owned = found->second;
    HF_ASSERT(owned.bytes == bytes && owned.residency == residency);
    owned_.erase(found);
    if (residency == Residency::device) device_bytes_ -= bytes;
    use_.bytes[size_t(residency)] -= owned.counted;
    use_.buffers[size_t(residency)] -= 1;
    use_.slack_bytes -= owned.slack;
    give_back(data, bytes + owned.slack);
}

void HostMemory::begin_upload() {
    uploads_ += 1;
    if (uploads_ == faults_.fail_upload)
        throw Error(fmt::format("upload {} fails, as was asked for", uploads_));
}

MemoryInfo HostMemory::info() const {
    if (limit_) return {*limit_, *limit_ - device_bytes_ + faults_.free_lie};
    return {meminfo("MemTotal:"), meminfo("MemAvailable:") + faults_.free_lie};
}

}  // namespace hf
