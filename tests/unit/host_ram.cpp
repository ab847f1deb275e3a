// What the machine and its control groups leave, and what is refused because of it.
#include "libcore/device/host_ram.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "libcore/base/refusal.h"
#include "libcore/load/host_fit.h"
#include "tests/unit/memory_limit.h"
#include "tests/unit/temp_folder.h"

using namespace hf;
using namespace hf::test;

namespace {

constexpr uint64_t kMib = 1 << 20;

/// A made-up /proc and /sys/fs/cgroup.
struct FakeSystem {
    TempFolder folder;

    FakeSystem() {
        write("meminfo", "MemTotal: 9999 kB\nMemAvailable:   8192 kB\nSwapTotal: 0 kB\n");
    }
    void write(const std::string& file, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(folder / file).parent_path());
        folder.write(file, text);
    }
    HostRam ram() const {
        return read_host_ram({folder / "meminfo",
                              folder / "statm",
                              {folder / "cgroup", folder / "own"},
                              folder / "status",
                              folder / "limits"});
    }
};

}  // namespace

TEST_CASE("host ram: without limits it is MemAvailable, and the swap is seen") {
    const FakeSystem system;
    CHECK(system.ram().available == 8 * kMib);
    CHECK(system.ram().limited_by == system.folder / "meminfo");
    CHECK_FALSE(system.ram().has_swap);
    system.write("meminfo", "MemAvailable: 1 kB\nSwapTotal: 7 kB\n");
    CHECK(system.ram().available == 1024);
    CHECK(system.ram().has_swap);
}

TEST_CASE("host ram: a meminfo that says nothing usable leaves it unknown") {
    const FakeSystem system;
    for (const char* text :
         {"", "MemAvailable:", "MemAvailable: x kB", "MemFree: 5 kB", "MemAvailable: -1 kB",
          "MemAvailable: 18446744073709551615 kB", "MemAvailable: 99999999999999999999 kB"}) {
        CAPTURE(std::string(text));
        system.write("meminfo", text);
        CHECK_FALSE(system.ram().available);
    }
    CHECK_FALSE(read_host_ram({.meminfo = system.folder / "nowhere"}).available);
}

TEST_CASE("host ram: a limit of the process itself counts, and is named") {
    const FakeSystem system;
    system.write("meminfo", "MemAvailable: 1073741824 kB\n");
    RamPaths paths{.meminfo = system.folder / "meminfo",
                   .statm = {},
                   .cgroups = {system.folder / "none", system.folder / "none"}};
    CHECK(read_host_ram(paths).limited_by == paths.meminfo);
    CHECK_FALSE(read_host_ram(paths).is_set);
    paths.statm = RamPaths().statm;
    CHECK(holds_within(64 * kMib, [&] {
        const HostRam ram = read_host_ram(paths);
        return ram.is_set && ram.limited_by == "RLIMIT_AS, ulimit -v" &&
               *ram.available <= 64 * kMib && *ram.available > 32 * kMib;
    }));
}

TEST_CASE("host ram: the tightest control group counts, in both versions, pages of files apart") {
    const struct {
        const char *version, *own, *at;
        const char *limit, *usage, *active, *inactive;
        const char* no_limit;
    } rows[] = {
        {"v2", "0::/a/b\n", "", "memory.max", "memory.current", "active_file", "inactive_file",
         "max\n"},
        {"v1", "4:memory:/a/b\n0::/\n", "memory/", "memory.limit_in_bytes", "memory.usage_in_bytes",
         "total_active_file", "total_inactive_file", "9223372036854771712\n"},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row.version));
        const FakeSystem system;
        const auto write = [&](const std::string& group, const char* file, uint64_t value) {
            system.write("cgroup/" + (row.at + group) + file, std::to_string(value) + "\n");
        };
        const auto left = [&] { return system.ram().available.value(); };
        system.write("own", row.own);
        CHECK(left() == 8 * kMib);  // the groups have no files

        write("a/b/", row.usage, 3 * kMib);
        system.write("cgroup/" + std::string(row.at) + "a/b/" + row.limit, row.no_limit);
        CHECK(left() == 8 * kMib);
        write("a/b/", row.limit, 7 * kMib);
        CHECK(left() == 4 * kMib);
        CHECK(system.ram().limited_by ==
              system.folder / ("cgroup/" + std::string(row.at) + "a/b/" + row.limit));

        write("a/", row.usage, 5 * kMib);  // a group above is tighter
        write("a/", row.limit, 6 * kMib);
        CHECK(left() == kMib);
        system.write("cgroup/" + std::string(row.at) + "a/memory.stat",
                     "anon 1\n" + (row.active + (" " + std::to_string(kMib))) + "\n" +
                         row.inactive + " " + std::to_string(kMib / 2) + "\n");
        CHECK(left() == kMib + kMib + kMib / 2);

        write("a/", row.usage, 60 * kMib);  // beyond its limit
        CHECK(left() == 0);
    }
}

TEST_CASE("host ram: a group's path from outside a container falls back to what exists above it") {
    const FakeSystem system;
    system.write("own", "0::/docker/0123\n");
    system.write("cgroup/memory.max", "3145728\n");
    system.write("cgroup/memory.current", "1048576\n");
    CHECK(system.ram().available == 2 * kMib);
}

TEST_CASE(
    "host ram: what may be locked is the limit less what is, unless the process is above it") {
    const auto limits = [](const std::string& soft) {
        return "Limit                     Soft Limit           Hard Limit           Units\n"
               "Max processes             77                   77                   processes\n"
               "Max locked memory         " +
               soft + "              99999                bytes\n";
    };
    const std::string none = "Name:\tx y\nVmLck:\t       0 kB\nCapEff:\t0000000000000000\n";
    const struct {
        const char* what;
        std::string status, limits;
        std::optional<uint64_t> lockable;
    } rows[] = {
        {"a limit", none, limits("65536"), 65536},
        {"less what is locked", "VmLck:\t      12 kB\n", limits("65536"), 65536 - 12 * 1024},
        {"more than the limit", "VmLck:\t      99 kB\n", limits("65536"), 0},
        {"nothing", none, limits("0"), 0},
        {"unlimited", none, limits("unlimited"), {}},
        {"CAP_IPC_LOCK", "CapEff:\t0000000000004000\n", limits("65536"), {}},
        {"root", "CapEff:\t000001ffffffffff\n", limits("65536"), {}},
        {"all but that", "CapEff:\t000001ffffffbfff\n", limits("65536"), 65536},
        {"no such line", none, "Max processes 77 77 processes\n", {}},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row.what));
        const FakeSystem system;
        CHECK_FALSE(system.ram().lockable);  // files that are missing
        system.write("status", row.status);
        system.write("limits", row.limits);
        CHECK(system.ram().lockable == row.lockable);
    }
}

namespace {

/// 10 MiB of weights in 3 tensors, and 1 MiB of activations.
HostNeed spilled() {
    return {.pinned_weights = 10 * kMib,
            .pads = 4 * kMib,
            .pinned_lane = kMib,
            .plain = kMib,
            .device = 20 * kMib};
}

HostRam of_bytes(uint64_t bytes) {
    return {bytes, "a test", false};
}

std::string refusal(const HostNeed& need, const HostRam& ram, uint64_t headroom, bool guarded) {
    return error_of([&] { check_host_fits(need, ram, headroom, guarded, [] { return ""; }); });
}

}  // namespace

TEST_CASE("preflight: pinned weights with their pads must leave the headroom, to the byte") {
    const uint64_t wanted = 15 * kMib + 4096 * kMib;
    CHECK(refusal(spilled(), of_bytes(wanted), 4096 * kMib, false) == "");
    CHECK(
        has_words(refusal(spilled(), of_bytes(wanted - 1), 4096 * kMib, false),
                  "refused: 15728640 bytes + 10485760 of weights + 4194304 of padding + "
                  "4294967296 must stay free + 4310695935 are available (a test): 1 are missing"));
    CHECK(refusal(spilled(), of_bytes(15 * kMib), 0, false) == "");
    CHECK(has_words(refusal(spilled(), of_bytes(15 * kMib - 1), 0, false), "1 are missing"));
}

TEST_CASE("preflight: what is locked must be allowed and leave the headroom, pinned or not") {
    HostNeed need = {.locked = 10 * kMib, .plain = kMib};
    CHECK(refusal(need, of_bytes(11 * kMib), kMib, false) == "");
    CHECK(has_words(refusal(need, of_bytes(11 * kMib - 1), kMib, false),
                    "10485760 bytes + 10485760 of mapped weights + 1048576 must stay free + 1 are "
                    "missing"));
    need.pinned_weights = 3 * kMib;
    CHECK(refusal(need, of_bytes(14 * kMib), kMib, false) == "");
    CHECK(has_words(refusal(need, of_bytes(14 * kMib - 1), kMib, false), "1 are missing"));
    CHECK(has_words(refusal(need, of_bytes(14 * kMib - 1), 0, true), "10485760 locked"));
    HostRam limited = of_bytes(1000 * kMib);
    limited.lockable = 10 * kMib;
    CHECK(refusal(need, limited, 0, true) == "");
    limited.lockable = 10 * kMib - 1;
    CHECK(has_words(refusal(need, limited, 0, false),
                    "refused: 10485760 bytes + 10485759 (RLIMIT_MEMLOCK) + 1 are missing"));
}

TEST_CASE("preflight: nothing pinned passes, what cannot be known is refused") {
    HostNeed need = spilled();
    need.pinned_weights = 0;
    CHECK(refusal(need, of_bytes(0), 4096 * kMib, false) == "");
    CHECK(refusal(need, {}, 4096 * kMib, false) == "");
    CHECK(has_words(refusal(spilled(), {}, 0, false), "refused: + cannot be read"));
    CHECK(has_words(refusal(need, {}, 0, true), "refused: + cannot be read"));
}

TEST_CASE("oom guard: with it everything that is needed must be there, exactly full is") {
    CHECK(refusal(spilled(), of_bytes(36 * kMib), 0, true) == "");
    CHECK(has_words(refusal(spilled(), of_bytes(36 * kMib - 1), 0, true),
                    "refused: 37748736 bytes of host memory are needed + 15728640 pinned + "
                    "1048576 plain + 20971520 for the device + 1 are missing"));
    CHECK(refusal(spilled(), of_bytes(36 * kMib - 1), 0, false) == "");
}

TEST_CASE("oom guard: auto is on where memory is the host's, unless there is swap") {
    DeviceInfo host, card, unified;
    host.kind = "host";
    card.kind = unified.kind = "hip";
    unified.unified = true;
    const HostRam no_swap = of_bytes(1), swap{1, "a test", true};
    const struct {
        const char* word;
        const DeviceInfo& info;
        const HostRam& ram;
        bool on;
    } rows[] = {
        {"auto", host, no_swap, true},    {"auto", host, swap, false},
        {"auto", unified, no_swap, true}, {"auto", card, no_swap, false},
        {"auto", host, {}, false},        {"on", card, swap, true},
        {"on", host, {}, true},           {"off", host, no_swap, false},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row.word));
        CHECK(is_guarded(row.word, row.info, row.ram) == row.on);
    }
}

TEST_CASE("cpu lane: its activations are pinned unless nothing may be, or the device cannot") {
    DeviceInfo info;
    CHECK(cpu_lane_residency(info, true) == Residency::host_mapped);
    CHECK(cpu_lane_residency(info, false) == Residency::host_plain);
    info.can_map_host = false;
    CHECK(cpu_lane_residency(info, true) == Residency::host_plain);
}
