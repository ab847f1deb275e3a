// HostRam: how much memory of the machine this process can still have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cpuexec/cgroups.h"

namespace hf {

/// Where Linux says so; tests point it elsewhere.
struct RamPaths {
    std::string meminfo = "/proc/meminfo";
    std::string statm = "/proc/self/statm";
    cpu::SystemPaths cgroups = {};
    std::string status = "/proc/self/status", limits = "/proc/self/limits";
};

struct HostRam {
    std::optional<uint64_t> available;  // bytes; none: it cannot be known
    std::string limited_by;             // who said so, for messages: a file, or a limit's name
    bool has_swap = false;
    std::optional<uint64_t> lockable =
        {};               // bytes that may still be locked; none: no limit is known
    bool is_set = false;  // somebody set that limit, and may raise it
};

/// The least of MemAvailable, of what the control groups of this process leave, and of what its own
/// limits leave (RLIMIT_AS and RLIMIT_DATA, ulimit -v and -d). Groups: their limits less what is in
/// use, where pages of files are not in use, because they can be dropped. Both versions of control
/// groups; files that are missing or without a limit say nothing. Locked may be what RLIMIT_MEMLOCK
/// leaves, unless the process has CAP_IPC_LOCK.
/// Source  Documentation/filesystems/proc.rst, admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst;
///         getrlimit(2), mlock(2), capabilities(7)
HostRam read_host_ram(const RamPaths& paths = {});

/// A line of a file like meminfo ("MemFree:  123 kB", "inactive_file 123") in the file's own
/// unit; none when it is not there.
std::optional<uint64_t> read_named_number(const std::string& path, const std::string& name);

}  // namespace hf
