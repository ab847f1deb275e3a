// The thread pool's promises, and how many threads it should have.
#include "cpuexec/thread_pool.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "cpuexec/topology.h"

namespace hf::cpu {
namespace {

/// Of so many threads, all awake: also where there are fewer CPUs, so that they get in each other's
/// way.
struct CrowdedPool : ThreadPool {
    explicit CrowdedPool(unsigned size, uint32_t spin_us = 5)
        : ThreadPool(size, {.spin_us = spin_us, .awake = size}) {}
};

TEST_CASE("every part of every step is done once, by a member, whatever the size of the pool") {
    constexpr uint32_t kSteps = 300, kMostParts = 20;
    for (unsigned size : {1, 2, 3, 7, 64}) {
        CAPTURE(size);
        CrowdedPool pool(size);
        CHECK(pool.size() == size);
        for (int repeat = 0; repeat < 3; ++repeat) {
            std::vector<std::array<std::atomic<int>, kMostParts>> done(kSteps);
            std::atomic<int> strangers = 0;
            pool.run(
                kSteps, [](uint32_t step) { return step % (kMostParts + 1); },
                [&](uint32_t step, uint32_t part, unsigned member) {
                    ++done[step][part];
                    strangers += member >= size;
                });
            size_t wrong = 0;
            for (uint32_t s = 0; s < kSteps; ++s)
                for (uint32_t p = 0; p < kMostParts; ++p)
                    wrong += done[s][p] != int(p < s % (kMostParts + 1));
            CHECK(wrong == 0);
            CHECK(strangers == 0);
        }
    }
}

TEST_CASE("a step may have more parts than one word counts") {
    for (uint32_t parts : {0xffffu - 1024, 0xffffu - 1023, 0xffffu, 200'001u}) {
        CAPTURE(parts);
        CrowdedPool pool(3);
        std::vector<uint8_t> done(parts);  // not atomic: each is written by one member
        pool.run(parts, [&](uint32_t part, unsigned) { ++done[part]; });
        CHECK(done == std::vector<uint8_t>(parts, 1));
    }
}

TEST_CASE("a job without steps, and one whose steps have no parts, return") {
    for (unsigned size : {1, 3}) {
        CrowdedPool pool(size);
        int calls = 0;
        const auto work = [&](uint32_t, uint32_t, unsigned) { ++calls; };
        pool.run(
            0, [](uint32_t) { return 1u; }, work);
        pool.run(
            5, [](uint32_t) { return 0u; }, work);
        CHECK(calls == 0);
    }
}

TEST_CASE("the caller is member 0, and members do their parts on threads of their own") {
    CrowdedPool pool(3);
    std::vector<std::thread::id> thread(pool.size());
    size_t wrong = 0;
    const auto caller = std::this_thread::get_id();
    for (int repeat = 0; repeat < 100; ++repeat)
        pool.run(
            1, [](uint32_t) { return 1u; },
            [&](uint32_t, uint32_t, unsigned member) {  // one part: no two at once
                if (thread[member] == std::thread::id())
                    thread[member] = std::this_thread::get_id();
                wrong += thread[member] != std::this_thread::get_id();
                wrong += (member == 0) != (std::this_thread::get_id() == caller);
            });
    CHECK(wrong == 0);
}

/// Runs kSteps steps of 64 parts, each of which computes a value from two of the step before. Plain
/// memory, so that a missing order shows in the values or in the thread sanitizer.
std::vector<uint64_t> mix(ThreadPool& pool, uint32_t steps) {
    constexpr uint32_t kParts = 64;
    std::array<std::vector<uint64_t>, 2> values;
    values.fill(std::vector<uint64_t>(kParts));
    std::iota(values[0].begin(), values[0].end(), 1);
    pool.run(
        steps, [](uint32_t) { return kParts; },
        [&](uint32_t s, uint32_t p, unsigned) {
            const auto& from = values[s % 2];
            values[1 - s % 2][p] = from[p] * 3 + from[(p + 1) % kParts] + s;
        });
    return values[steps % 2];
}

TEST_CASE("a step sees all that the step before it wrote") {
    constexpr uint32_t kSteps = 2000;
    ThreadPool one(1);
    const auto expected = mix(one, kSteps);
    for (unsigned size : {2, 3, 7, 8}) {
        CAPTURE(size);
        CrowdedPool crowded(size);
        CHECK(mix(crowded, kSteps) == expected);
        ThreadPool pool(size);
        CHECK(mix(pool, kSteps) == expected);
    }
}

TEST_CASE("members that sleep at once miss no step and no end") {
    for (unsigned size : {2, 3, 8}) {
        CAPTURE(size);
        CrowdedPool pool(size, /*spin_us=*/0);
        ThreadPool one(1);
        for (uint32_t steps = 1; steps < 120; ++steps) CHECK(mix(pool, steps) == mix(one, steps));
    }
}

std::atomic<bool> is_taken = false, is_given_back = false;

/// Takes a thread's core away, as far as it can tell.
void take_core(int) {
    is_taken = true;
    while (!is_given_back) {
    }
    is_taken = false;
}

TEST_CASE("a member whose core is taken away while it holds no part is not waited for") {
    CrowdedPool pool(2, /*spin_us=*/10'000'000);
    std::signal(SIGUSR1, take_core);
    for (const bool is_in_job : {false, true}) {  // between jobs, or between steps
        CAPTURE(is_in_job);
        is_given_back = false;
        pthread_t thread[2] = {};
        std::atomic<int> begun = 0;
        const auto take = [&] {
            pthread_kill(thread[1], SIGUSR1);
            while (!is_taken) std::this_thread::yield();
        };
        const auto parts = [](uint32_t step) { return step == 0 ? 2u : step == 1 ? 1u : 8u; };
        const auto work = [&](uint32_t step, uint32_t, unsigned member) {
            if (step == 0) {  // both take part
                thread[member] = pthread_self();
                ++begun;
                while (begun < 2) std::this_thread::yield();
            }
            if (step == 1 && is_in_job && member == 0 && !is_taken) take();
        };
        // in a job it is taken as soon as the caller has the part of step 1 for itself
        for (int repeat = 0; repeat < 1000 && !is_taken; ++repeat) {
            begun = 0;
            pool.run(50, parts, work);
            if (!is_in_job) take();
        }
        CHECK(is_taken);
        std::atomic<int> of_caller = 0;
        pool.run(8, [&](uint32_t, unsigned member) { of_caller += member == 0; });
        CHECK(of_caller == 8);
        is_given_back = true;
        while (is_taken) std::this_thread::yield();
    }
    std::signal(SIGUSR1, SIG_DFL);
}

TEST_CASE("a member that is long at its part does not keep the others from theirs") {
    CrowdedPool pool(3);
    std::atomic<int> others = 0;
    std::atomic<bool> is_held = false;
    pool.run(50, [&](uint32_t, unsigned) {
        if (is_held.exchange(true)) {
            ++others;
            return;
        }
        while (others < 49) std::this_thread::yield();
    });
    CHECK(others == 49);
}

double cpu_seconds() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](timeval t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST_CASE("four times as many members as CPUs finish thousands of steps in reasonable time") {
    const unsigned size = std::min(4 * std::thread::hardware_concurrency(), 1024u);
    for (const bool is_crowded : {false, true}) {
        ThreadPool pool(size, {.awake = is_crowded ? size : 0});
        std::vector<std::atomic<uint32_t>> parts(size);  // of each member
        const auto begin = std::chrono::steady_clock::now();
        pool.run(
            4000, [](uint32_t) { return 16u; },
            [&](uint32_t, uint32_t, unsigned member) {
                for (int i = 0; i < 200; ++i) __builtin_ia32_pause();
                ++parts[member];
            });
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        uint32_t sum = 0, busy = 0;
        for (const auto& p : parts) sum += p, busy += p > 0;
        MESSAGE(size << " members, 4000 steps: " << seconds.count() << " s, parts for " << busy);
        CHECK(sum == 4000 * 16);
        CHECK(seconds.count() < 20);  // a step that waits for time slices would take 10 ms
    }
}

TEST_CASE("an idle pool uses no CPU, and wakes up again") {
    CrowdedPool pool(4, /*spin_us=*/100);
    std::atomic<int> parts = 0;
    pool.run(16, [&](uint32_t, unsigned) { ++parts; });
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double used = cpu_seconds() - before;
    MESSAGE("idle for 200 ms: " << used * 1e3 << " ms of CPU");
    CHECK(used < 0.04);  // one busy thread would use 0.2
    pool.run(16, [&](uint32_t, unsigned) { ++parts; });
    CHECK(parts == 32);
}

TEST_CASE("members that wait long for somebody's part sleep, too") {
    CrowdedPool pool(4);
    double used = 0;
    pool.run(1, [&](uint32_t, unsigned) {
        const double before = cpu_seconds();
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        used = cpu_seconds() - before;
    });
    CHECK(used < 0.04);
}

TEST_CASE("a sleeping member comes back for a step that has work for it") {
    CrowdedPool pool(2);
    for (int repeat = 0; repeat < 5; ++repeat) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // it sleeps now
        std::atomic<int> begun = 0;
        pool.run(2, [&](uint32_t, unsigned) {  // both parts wait for each other
            ++begun;
            while (begun < 2) std::this_thread::yield();
        });
        CHECK(begun == 2);
    }
}

TEST_CASE("a pool can be destroyed unused, right after a job, and while its members sleep") {
    for (int wait_ms : {-1, 0, 5}) {
        ThreadPool pool(3);
        if (wait_ms >= 0) pool.run(3, [](uint32_t, unsigned) {});
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

TEST_CASE("threads are limited by the quota, rounded, and at least one") {
    CHECK(limit_threads(8, std::nullopt) == 8);
    CHECK(limit_threads(8, 1.1) == 1);
    CHECK(limit_threads(8, 1.49) == 1);
    CHECK(limit_threads(8, 1.5) == 2);
    CHECK(limit_threads(1, 1.5) == 1);
    CHECK(limit_threads(8, 7.6) == 8);
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
