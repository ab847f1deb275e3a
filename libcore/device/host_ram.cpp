#include "libcore/device/host_ram.h"

#include <charconv>
#include <fstream>

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

/// The first word of a file as a number; none for "max" and for what is no number.
std::optional<uint64_t> read_number(const std::string& path) {
    std::string word;
    std::ifstream(path) >> word;
    uint64_t value = 0;
    const char* end = word.data() + word.size();
    const auto [stop, failure] = std::from_chars(word.data(), end, value);
    if (word.empty() || failure != std::errc() || stop != end) return {};
    return value;
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

}  // namespace

std::optional<uint64_t> read_named_number(const std::string& path, const std::string& name) {
    std::ifstream in(path);
    std::string found, rest;
    for (uint64_t value = 0; in >> found >> value; std::getline(in, rest))
        if (found == name) return value;
    return {};
}

HostRam read_host_ram(const RamPaths& paths) {
    constexpr uint64_t kKib = 1024;
    HostRam ram;
    ram.has_swap = read_named_number(paths.meminfo, "SwapTotal:").value_or(0) > 0;
    const auto kib = read_named_number(paths.meminfo, "MemAvailable:");
    if (!kib || *kib > UINT64_MAX / kKib) return ram;
    ram.available = *kib * kKib;
    ram.limited_by = paths.meminfo;
    for (const std::string& group : cpu::cgroup_folders(paths.cgroups, "memory"))
        for (const GroupFiles& files : kVersions)
            if (const auto left = left_in(group, files); left && *left < *ram.available) {
                ram.available = *left;
                ram.limited_by = group + "/" + files.limit;
            }
    return ram;
}

}  // namespace hf
