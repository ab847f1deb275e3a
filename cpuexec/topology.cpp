// How many threads make sense here. Cores by hwloc, quotas from the cgroup files of Linux
// (Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst).
#include "cpuexec/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

namespace hf::cpu {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// What the files of one group say, whichever version they are.
std::optional<double> quota_of_group(const fs::path& group) {
    if (const auto quota = parse_cpu_max(read_text(group / "cpu.max"))) return quota;
    return parse_cpu_max(read_text(group / "cpu.cfs_quota_us") + " " +
                         read_text(group / "cpu.cfs_period_us"));
}

}  // namespace

std::optional<double> parse_cpu_max(const std::string& text) {
    std::istringstream in(text);
    double quota, period;
    if (!(in >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
    return quota / period;
}

std::optional<double> cpu_quota(const SystemPaths& paths) {
    std::optional<double> least;
    for (const std::string& group : cgroup_folders(paths, "cpu"))
        if (const auto quota = quota_of_group(group))
            least = std::min(*quota, least.value_or(*quota));
    return least;
}

unsigned limit_threads(unsigned cores, std::optional<double> quota) {
    const double most = std::min(double(cores), quota.value_or(cores));
    return std::max(1u, unsigned(most + 0.5));
}

unsigned allowed_cores() {
    unsigned cores = 0;
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return std::max(1u, std::thread::hardware_concurrency());
    hwloc_bitmap_t mask = hwloc_bitmap_alloc();
    if (hwloc_topology_load(topology) == 0 &&
        hwloc_get_cpubind(topology, mask, HWLOC_CPUBIND_THREAD) == 0) {
        hwloc_obj_t core = nullptr;
        while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)))
            cores += hwloc_bitmap_intersects(core->cpuset, mask) != 0;
    }
    hwloc_bitmap_free(mask);
    hwloc_topology_destroy(topology);
    return cores ? cores : std::max(1u, std::thread::hardware_concurrency());
}

unsigned default_threads(const SystemPaths& paths) {
    return limit_threads(allowed_cores(), cpu_quota(paths));
}

}  // namespace hf::cpu
