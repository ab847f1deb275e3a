// hf-run where threads and CPUs do not match: it ends, with the answer of one thread. How fast it
// is then stands in docs/perf/2026-11-30-thread-pool.md.
#include <doctest/doctest.h>
#include <sched.h>

#include <nlohmann/json.hpp>

#include "tests/support/data.h"
#include "tests/tools/process.h"

using namespace hf::test;
using Json = nlohmann::json;

namespace {

/// The summary of an answer of 40 tokens.
Json summary(const std::string& threads) {
    const Outcome run = run_process({HF_RUN, "-m", demo_model_path(), "--raw", "Once upon a time",
                                     "--temp", "0", "--ignore-eos", "--max-tokens", "40", "--json",
                                     "--hash", "--threads", threads});
    REQUIRE(run.code == 0);
    const size_t end = run.out.size() - 1;  // the last line's
    return Json::parse(run.out.substr(run.out.rfind('\n', end - 1) + 1));
}

cpu_set_t allowed_cpus() {
    cpu_set_t cpus;
    REQUIRE(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    return cpus;
}

/// What this process starts may use one of its CPUs only.
struct OneCpu {
    cpu_set_t before = allowed_cpus();
    OneCpu() {
        cpu_set_t one;
        CPU_ZERO(&one);
        for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
            if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
        REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    }
    ~OneCpu() { sched_setaffinity(0, sizeof before, &before); }
};

}  // namespace

TEST_CASE("hf-run: one CPU of several, or four times as many threads as CPUs, change no answer") {
    const Json one = summary("1");
    const cpu_set_t cpus = allowed_cpus();
    const Json many = summary(std::to_string(4 * CPU_COUNT(&cpus)));
    CHECK(many["hash"] == one["hash"]);
    CHECK(many["device"]["threads"] == 4 * CPU_COUNT(&cpus));

    const OneCpu narrow;
    for (const auto& [asked, threads] : {std::pair("0", 1), std::pair("2", 2), std::pair("8", 8)}) {
        CAPTURE(threads);
        const Json found = summary(asked);
        CHECK(found["device"]["threads"] == threads);
        CHECK(found["hash"] == one["hash"]);
    }
}
