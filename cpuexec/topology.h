// How many threads make sense here: cores, affinity, and what a container allows.
#pragma once

#include <optional>
#include <string>

#include "cpuexec/cgroups.h"

namespace hf::cpu {

/// One thread for each physical core that the calling thread's affinity mask touches, as far as the
/// cgroup's CPU quota goes. Takes some milliseconds: ask once.
unsigned default_threads(const SystemPaths& paths = {});

/// Physical cores of which the calling thread may use at least one hardware thread.
unsigned allowed_cores();

/// CPUs worth of time per period that the process may use: the least of its cgroup and the groups
/// above it, in cgroup v2 (cpu.max) and v1 (cpu.cfs_quota_us). Nothing when there is no limit, and
/// for files that are missing or not understood.
std::optional<double> cpu_quota(const SystemPaths& paths);

/// The quota in the text of a cpu.max file: "150000 100000" is 1.5, "max 100000" is no limit.
std::optional<double> parse_cpu_max(const std::string& text);

/// A quota is rounded to the nearest number: 1.5 gives two threads. They are stopped for a quarter
/// of every period and still do more than one; with 1.1 they would do less
/// (docs/perf/2026-11-30-thread-pool.md). At least one.
unsigned limit_threads(unsigned cores, std::optional<double> quota);

}  // namespace hf::cpu
