// What of a process is in memory and what is locked there, and a process that may not lock much.
#pragma once

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace hf::test {

/// Bytes of whole pages that this process can read without a fault.
/// Source  Documentation/admin-guide/mm/pagemap.rst of Linux
inline size_t resident_bytes(std::span<const std::byte> pages) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    std::vector<uint64_t> entries(pages.size() / page);
    const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const off_t at = off_t(uintptr_t(pages.data()) / page * sizeof(uint64_t));
    const ssize_t wanted = ssize_t(entries.size() * sizeof(uint64_t));
    const bool is_read = pread(file, entries.data(), size_t(wanted), at) == wanted;
    close(file);
    if (!is_read) throw std::runtime_error("/proc/self/pagemap cannot be read");
    size_t bytes = 0;
    for (const uint64_t entry : entries) bytes += entry >> 63 ? page : 0;
    return bytes;
}

/// A line of /proc/PID/status that has KiB, in bytes.
inline uint64_t status_bytes(const std::string& name, pid_t pid = getpid()) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    uint64_t kib = 0;
    for (std::string word; status >> word;)
        if (word == name) status >> kib;
    return kib * 1024;
}

inline uint64_t locked_bytes(pid_t pid = getpid()) {
    return status_bytes("VmLck:", pid);
}

/// Whether this process may lock so many bytes more.
inline bool may_lock(size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool may = memory != MAP_FAILED && mlock2(memory, bytes, MLOCK_ONFAULT) == 0;
    munmap(memory, bytes);
    return may;
}

/// Whether munlock() unlocks; sanitizers make it do nothing.
inline bool can_unlock() {
    alignas(4096) static std::byte page[4096];
    const uint64_t before = locked_bytes();
    mlock2(page, sizeof page, MLOCK_ONFAULT);
    munlock(page, sizeof page);
    return locked_bytes() == before;
}

/// From now on this process, and what it starts, may lock so many bytes; root too.
inline void limit_locking(uint64_t bytes) {
    prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK);  // for what it starts; fails for who never had it
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2] = {};
    if (syscall(SYS_capget, &header, sets) == 0) {
        sets[0].effective &= ~(1u << CAP_IPC_LOCK);
        syscall(SYS_capset, &header, sets);
    }
    const rlimit limit = {bytes, bytes};
    setrlimit(RLIMIT_MEMLOCK, &limit);
}

}  // namespace hf::test
