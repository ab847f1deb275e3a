// The thread pool's promises, and how many threads it should have.
#include "cpuexec/thread_pool.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "cpuexec/topology.h"

namespace hf::cpu {
namespace {

TEST_CASE("every part of every step is claimed once, whatever the size of the pool") {
    constexpr uint32_t kSteps = 300, kMostParts = 20;
    for (unsigned size : {1, 2, 3, 7}) {
        CAPTURE(size);
        ThreadPool pool(size);
        CHECK(pool.size() == size);
        for (int repeat = 0; repeat < 3; ++repeat) {
            std::vector<std::array<std::atomic<int>, kMostParts>> claims(kSteps);
            pool.run([&](Team& team) {
                for (uint32_t s = 0; s < kSteps; ++s) {
                    const uint32_t parts = s % (kMostParts + 1);
                    for (uint32_t p; (p = team.next_part()) < parts;) ++claims[s][p];
                    team.barrier();
                }
            });
            size_t wrong = 0;
            for (uint32_t s = 0; s < kSteps; ++s)
                for (uint32_t p = 0; p < kMostParts; ++p)
                    wrong += claims[s][p] != int(p < s % (kMostParts + 1));
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("every member runs the job once, the caller as member 0") {
    for (unsigned size : {1, 2, 3, 7}) {
        ThreadPool pool(size);
        std::vector<int> runs(size);
        const auto caller = std::this_thread::get_id();
        bool caller_is_0 = false;
        for (int repeat = 0; repeat < 100; ++repeat)
            pool.run([&](Team& team) {
                ++runs[team.member()];  // not atomic: ordered by run()
                if (team.member() == 0) caller_is_0 = std::this_thread::get_id() == caller;
            });
        CHECK(runs == std::vector<int>(size, 100));
        CHECK(caller_is_0);
    }
}

TEST_CASE("a step sees all that the step before it wrote") {
    // Each step computes 64 values from those of the step before; plain memory, so that a missing
    // order shows in the values or in the thread sanitizer. 8 members are too many for small hosts.
    constexpr uint32_t kParts = 64, kSteps = 3000;
    const auto compute = [](unsigned size) {
        std::array<std::vector<uint64_t>, 2> values;
        values.fill(std::vector<uint64_t>(kParts));
        std::iota(values[0].begin(), values[0].end(), 1);
        ThreadPool pool(size);
        pool.run([&](Team& team) {
            for (uint32_t s = 0; s < kSteps; ++s) {
                const auto& from = values[s % 2];
                auto& to = values[1 - s % 2];
                for (uint32_t p; (p = team.next_part()) < kParts;)
                    to[p] = from[p] * 3 + from[(p + 1) % kParts] + s;
                team.barrier();
            }
        });
        return values[kSteps % 2];
    };
    const auto expected = compute(1);
    for (unsigned size : {2, 3, 7, 8}) CHECK(compute(size) == expected);
}

TEST_CASE("more members than CPUs finish thousands of steps in reasonable time") {
    ThreadPool pool(8);
    std::atomic<uint64_t> parts = 0;
    const auto begin = std::chrono::steady_clock::now();
    pool.run([&](Team& team) {
        for (int s = 0; s < 4000; ++s) {
            while (team.next_part() < 16) parts.fetch_add(1, std::memory_order_relaxed);
            team.barrier();
        }
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    MESSAGE("8 members, 4000 steps: " << seconds.count() << " s");
    CHECK(parts == 4000 * 16);
    CHECK(seconds.count() < 20);  // a descheduled spinner at each step would cost 4000 time slices
}

double cpu_seconds() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](timeval t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST_CASE("an idle pool uses no CPU, and wakes up again") {
    ThreadPool pool(4);
    std::atomic<int> runs = 0;
    pool.run([&](Team&) { ++runs; });
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double used = cpu_seconds() - before;
    MESSAGE("idle for 200 ms: " << used * 1e3 << " ms of CPU");
    CHECK(used < 0.04);  // one busy thread would use 0.2
    pool.run([&](Team&) { ++runs; });
    CHECK(runs == 8);
}

TEST_CASE("members that wait long at a barrier sleep, too") {
    ThreadPool pool(4);
    double used = 0;
    pool.run([&](Team& team) {
        if (team.member() == 0) {
            const double before = cpu_seconds();
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            used = cpu_seconds() - before;
        }
        team.barrier();
    });
    CHECK(used < 0.04);
}

TEST_CASE("members that park at once miss no wake-up") {
    ThreadPool pool(3, {.spin_us = 0, .yield_us = 0});
    std::atomic<int> count = 0;
    for (int repeat = 0; repeat < 300; ++repeat)
        pool.run([&](Team& team) {
            for (int s = 0; s < 5; ++s) team.barrier();
            ++count;
        });
    CHECK(count == 900);
}

TEST_CASE("a pool can be destroyed unused, right after a job, and while its members are parked") {
    for (int wait_ms : {-1, 0, 5}) {
        ThreadPool pool(3);
        if (wait_ms >= 0) pool.run([](Team&) {});
        if (wait_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    }
    CHECK_THROWS(ThreadPool(0));
    CHECK_THROWS(ThreadPool(1025));
}

/// A folder with made-up cgroup files, removed at the end.
struct FakeCgroups {
    FakeCgroups() {
        char name[] = "/tmp/hf-cgroups-XXXXXX";
        root = mkdtemp(name);
    }
    ~FakeCgroups() { std::filesystem::remove_all(root); }
    void write(const std::string& file, const std::string& text) const {
        std::filesystem::create_directories(
            (root + "/" + file).substr(0, (root + "/" + file).rfind('/')));
        std::ofstream(root + "/" + file) << text;
    }
    std::optional<double> quota(const std::string& own) const {
        write("own", own);
        return cpu_quota({root, root + "/own"});
    }
    std::string root;
};

TEST_CASE("the quota is the least of the own cgroup and those above it") {
    const FakeCgroups fake;
    CHECK(fake.quota("0::/a/b\n") == std::nullopt);
    fake.write("a/b/cpu.max", "max 100000\n");
    CHECK(fake.quota("0::/a/b\n") == std::nullopt);
    fake.write("a/cpu.max", "150000 100000\n");
    CHECK(fake.quota("0::/a/b\n") == 1.5);
    fake.write("a/b/cpu.max", "400000 100000\n");
    CHECK(fake.quota("0::/a/b\n") == 1.5);
    fake.write("a/b/cpu.max", "50000 100000\n");
    CHECK(fake.quota("0::/a/b\n") == 0.5);
    CHECK(fake.quota("0::/\n") == std::nullopt);
    CHECK(fake.quota("0::/../a\n") == 1.5);  // a namespace's view from inside
    CHECK(fake.quota("0::/elsewhere/c\n") == std::nullopt);
    fake.write("cpu.max", "300000 100000\n");
    CHECK(fake.quota("0::/elsewhere/c\n") == 3.0);
}

TEST_CASE("quotas of cgroup v1 are found under their controllers' name") {
    const FakeCgroups fake;
    const std::string own = "5:memory:/m\n4:cpuset:/s\n3:cpu,cpuacct:/docker/x\n0::/\n";
    CHECK(fake.quota(own) == std::nullopt);
    fake.write("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    fake.write("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    CHECK(fake.quota(own) == std::nullopt);
    fake.write("cpu,cpuacct/cpu.cfs_quota_us", "250000\n");  // a container sees its group as root
    CHECK(fake.quota(own) == 2.5);
    fake.write("cpu,cpuacct/docker/x/cpu.cfs_period_us", "50000\n");
    fake.write("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "50000\n");
    CHECK(fake.quota(own) == 1.0);
}

TEST_CASE("texts that are no quota limit nothing") {
    for (const char* text :
         {"", "max", "max 100000", "100000", "0 100000", "100000 0", "-1 100000", "x y"})
        CHECK(parse_cpu_max(text) == std::nullopt);
    const FakeCgroups fake;
    fake.write("cpu.max", "100000 100000");
    for (const char* own : {"", "nonsense", "0:", "0:/", ":::"}) fake.quota(own);  // no crash
    CHECK(fake.quota("a line\n0::/") == 1.0);
}

TEST_CASE("threads are limited by the quota, rounded down, and at least one") {
    CHECK(limit_threads(8, std::nullopt) == 8);
    CHECK(limit_threads(8, 1.5) == 1);
    CHECK(limit_threads(8, 2.0) == 2);
    CHECK(limit_threads(8, 0.2) == 1);
    CHECK(limit_threads(8, 1e300) == 8);
    CHECK(limit_threads(0, std::nullopt) == 1);
}

TEST_CASE("the default respects the affinity mask of the calling thread") {
    const unsigned all = allowed_cores();
    CHECK(all >= 1);
    CHECK(all <= std::thread::hardware_concurrency());
    unsigned one = 0;
    std::thread([&] {
        cpu_set_t mask;
        sched_getaffinity(0, sizeof(mask), &mask);
        int cpu = 0;
        while (!CPU_ISSET(cpu, &mask)) ++cpu;
        CPU_ZERO(&mask);
        CPU_SET(cpu, &mask);
        sched_setaffinity(0, sizeof(mask), &mask);
        one = default_threads();
    }).join();
    CHECK(one == 1);
}

}  // namespace
}  // namespace hf::cpu
