#include "libcore/device/host_ram.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cctype>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

namespace hf {
namespace {

/// How a version of control groups spells it.
struct GroupFiles {
    const char *limit, *usage;
    const char *active_file, *inactive_file;  // in memory.stat, of the group and those below it
};
constexpr GroupFiles kVersions[] = {
    {"memory.max", "memory.current", "active_file", "inactive_file"},
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file", "total_inactive_file"},
};

/// A limit of this process, and the place in statm of what counts for it, in pages.
struct ProcessLimit {
    int resource, place;
    const char* name;
};
constexpr ProcessLimit kProcessLimits[] = {
    {RLIMIT_AS, 0, "RLIMIT_AS, ulimit -v"},
    {RLIMIT_DATA, 5, "RLIMIT_DATA, ulimit -d"},
};

/// The whole word as a number; none for "max" and for what is no number.
std::optional<uint64_t> number(std::string_view word, int base = 10) {
    uint64_t value = 0;
    const char* end = word.data() + word.size();
    const auto [stop, failure] = std::from_chars(word.data(), end, value, base);
    if (word.empty() || failure != std::errc() || stop != end) return {};
    return value;
}

/// The first word of a file as a number; none for "max" and for what is no number.
std::optional<uint64_t> read_number(const std::string& path) {
    std::string word;
    std::ifstream(path) >> word;
    return number(word);
}

/// The word behind a name that begins a line; empty when there is none.
std::string read_named_word(const std::string& path, const std::string& name) {
    std::ifstream in(path);
    for (std::string line, word; std::getline(in, line);)
        if (line.starts_with(name) && std::isspace(uint8_t(line.c_str()[name.size()]))) {
            std::istringstream(line.substr(name.size())) >> word;
            return word;
        }
    return {};
}

/// Whether limits on locked memory do not hold for this process.
bool may_lock_all(const RamPaths& paths) {
    constexpr int kCapIpcLock = 14;  // linux/capability.h
    const auto capabilities = number(read_named_word(paths.status, "CapEff:"), 16);
    return capabilities && (*capabilities >> kCapIpcLock & 1);
}

uint64_t minus(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/// What a group leaves; none where it sets no limit.
std::optional<uint64_t> left_in(const std::string& group, const GroupFiles& files) {
    const auto limit = read_number(group + "/" + files.limit);
    const auto usage = read_number(group + "/" + files.usage);
    if (!limit || !usage) return {};
    uint64_t used = *usage;
    for (const char* pages : {files.active_file, files.inactive_file})
        used = minus(used, read_named_number(group + "/memory.stat", pages).value_or(0));
    return minus(*limit, used);
}

/// What RLIMIT_MEMLOCK leaves; none where it sets no limit.
std::optional<uint64_t> lockable_bytes(const RamPaths& paths) {
    const auto limit = number(read_named_word(paths.limits, "Max locked memory"));
    if (!limit || may_lock_all(paths)) return {};
    return minus(*limit, number(read_named_word(paths.status, "VmLck:")).value_or(0) * 1024);
}

/// What a limit leaves; none where there is no limit.
std::optional<uint64_t> left_by(const ProcessLimit& limit, const std::string& statm) {
    rlimit bytes{};
    if (getrlimit(__rlimit_resource_t(limit.resource), &bytes) != 0) return {};
    if (bytes.rlim_cur == RLIM_INFINITY) return {};
    uint64_t pages = 0;
    std::ifstream in(statm);
    for (int i = 0; i <= limit.place; ++i) in >> pages;
    if (!in) return {};
    return minus(bytes.rlim_cur, pages * uint64_t(sysconf(_SC_PAGESIZE)));
}

}  // namespace

HostRam read_host_ram(const RamPaths& paths) {
    constexpr uint64_t kKib = 1024;
    HostRam ram;
    ram.lockable = lockable_bytes(paths);
    ram.has_swap = read_named_number(paths.meminfo, "SwapTotal:").value_or(0) > 0;
    const auto kib = read_named_number(paths.meminfo, "MemAvailable:");
    if (!kib || *kib > UINT64_MAX / kKib) return ram;
    ram.available = *kib * kKib;
    ram.limited_by = paths.meminfo;
    const auto limit = [&](std::optional<uint64_t> left, const std::string& by) {
        if (!left || *left >= *ram.available) return;
        ram.available = *left;
        ram.limited_by = by;
        ram.is_set = true;
    };
    for (const std::string& group : cpu::cgroup_folders(paths.cgroups, "memory"))
        for (const GroupFiles& files : kVersions)
            limit(left_in(group, files), group + "/" + files.limit);
    for (const ProcessLimit& own : kProcessLimits) limit(left_by(own, paths.statm), own.name);
    return ram;
}

std::optional<uint64_t> read_named_number(const std::string& path, const std::string& name) {
    return number(read_named_word(path, name));
}

}  // namespace hf
