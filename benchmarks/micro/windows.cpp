#include "benchmarks/micro/windows.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace hf::bench {
namespace {

/// How often the system took the core from a thread of ours that wanted to go on.
long interruptions() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

Dispatch timed(const Arm& arm, size_t turn) {
    using Clock = std::chrono::steady_clock;
    const long before = interruptions();
    const auto begin = Clock::now();
    arm.run(turn);
    const std::chrono::duration<double> taken = Clock::now() - begin;
    return {taken.count(), interruptions() != before};
}

}  // namespace

Window window_of(std::span<const Dispatch> dispatches, uint64_t bytes) {
    Window window;
    double seconds = 0;
    for (const Dispatch& d : dispatches) {
        if (d.is_disturbed) continue;
        seconds += d.seconds;
        ++window.kept;
    }
    window.dropped = uint32_t(dispatches.size()) - window.kept;
    const bool is_enough = window.kept > 0 && window.kept >= window.dropped;
    window.gb_per_s = is_enough ? double(bytes) * window.kept / seconds / 1e9
                                : std::numeric_limits<double>::quiet_NaN();
    return window;
}

std::vector<std::vector<Window>> measure_in_turns(std::span<const Arm> arms, size_t wanted,
                                                  size_t dispatches) {
    std::vector<std::vector<Window>> windows(arms.size());
    std::vector<Dispatch> taken(dispatches);
    const auto has_enough = [wanted](const std::vector<Window>& of_arm) {
        return speed_of(of_arm).count >= wanted;
    };
    size_t turn = 0;
    for (size_t round = 0; round < 3 * wanted; ++round) {
        if (std::ranges::all_of(windows, has_enough)) break;
        for (size_t a = 0; a < arms.size(); ++a) {
            arms[a].run(turn++);  // the pool wakes, the code is read
            for (Dispatch& d : taken) d = timed(arms[a], turn++);
            windows[a].push_back(window_of(taken, arms[a].bytes));
        }
    }
    return windows;
}

Spread spread_of(std::vector<double> values) {
    std::erase_if(values, [](double v) { return std::isnan(v); });
    if (values.empty()) return {};
    std::ranges::sort(values);
    const size_t n = values.size();
    return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back(), n};
}

Spread speed_of(std::span<const Window> windows) {
    std::vector<double> speeds;
    for (const Window& w : windows) speeds.push_back(w.gb_per_s);
    return spread_of(speeds);
}

Spread ratio_of(std::span<const Window> windows, std::span<const Window> to) {
    std::vector<double> ratios;
    for (size_t round = 0; round < std::min(windows.size(), to.size()); ++round)
        ratios.push_back(windows[round].gb_per_s / to[round].gb_per_s);
    return spread_of(ratios);
}

}  // namespace hf::bench
