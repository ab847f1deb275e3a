// Which control groups hold this process: what a container allows stands in their files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hf::cpu {

/// Where Linux says what a process may use; tests point it elsewhere.
struct SystemPaths {
    std::string cgroup_root = "/sys/fs/cgroup";
    std::string own_cgroups = "/proc/self/cgroup";
};

/// Folders of the groups of a controller ("cpu", "memory") that this process is in, in cgroup v2
/// and v1: its own and all above it, up to the root of the hierarchy. A container may see its group
/// under a path that does not exist here; such a folder is listed, and its files are missing.
/// Source  Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cgroups.rst of Linux
std::vector<std::string> cgroup_folders(const SystemPaths& paths, std::string_view controller);

}  // namespace hf::cpu
