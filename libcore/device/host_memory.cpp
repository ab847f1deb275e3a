#include "libcore/device/host_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include "libcore/base/error.h"

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

}  // namespace

Buffer HostMemory::allocate(uint64_t bytes, Residency residency) {
    HF_ASSERT(bytes > 0);
    std::byte* data = allocate_zeroed(bytes);
    if (!data)
        throw Error(
            fmt::format("out of memory: {} bytes wanted, {} available; lower "
                        "memory.max_seq or use a smaller model",
                        bytes, info().free));
    use_.bytes[size_t(residency)] += bytes;
    use_.buffers[size_t(residency)] += 1;
    return {data, bytes, residency, *this};
}

void HostMemory::release(std::byte* data, uint64_t bytes, Residency residency) noexcept {
    use_.bytes[size_t(residency)] -= bytes;
    use_.buffers[size_t(residency)] -= 1;
    if (bytes >= kWholePages)
        munmap(data, bytes);
    else
        operator delete[](data, kAlignment);
}

MemoryInfo HostMemory::info() const {
    return {meminfo("MemTotal:"), meminfo("MemAvailable:")};
}

}  // namespace hf
