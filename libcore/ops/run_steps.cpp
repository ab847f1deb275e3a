#include "libcore/ops/run_steps.h"

#include <atomic>
#include <chrono>
#include <memory>

#include "libcore/ops/dispatches.h"
#include "libcore/ops/ops_table.h"

namespace hf {
namespace {

void do_part(const Dispatch& dispatch, size_t i, uint32_t part, const Tokens& tokens) {
    const Step& step = *dispatch.step[i];
    row_of(step.op).host(step, tokens, part, dispatch.parts[i]);
}

/// Runs a plan with a clock at the borders of dispatches and parts.
class Meter {
  public:
    explicit Meter(std::span<const Dispatch> plan)
        : plan_(plan),
          begin_(plan.size() + 1),
          ticks_(std::make_unique<std::atomic<int64_t>[]>(plan.size() * Dispatch::kMostSteps)) {}

    void run(const Tokens& tokens, cpu::ThreadPool& pool) {
        pool.run(
            uint32_t(plan_.size()),
            [&](uint32_t d) {
                begin_[d] = Clock::now();
                return plan_[d].claims();
            },
            [&](uint32_t d, uint32_t claim, unsigned) {
                plan_[d].for_claim(claim, [&](size_t i, uint32_t part) {
                    const auto start = Clock::now();
                    do_part(plan_[d], i, part, tokens);
                    ticks_[d * Dispatch::kMostSteps + i].fetch_add((Clock::now() - start).count(),
                                                                   std::memory_order_relaxed);
                });
            });
        begin_.back() = Clock::now();
    }

    /// The time of steps that ran at once is divided in proportion to what threads spent on each.
    void report(const Tokens& tokens, StepTimer& timer) const {
        for (size_t d = 0; d < plan_.size(); ++d) {
            const double wall = seconds((begin_[d + 1] - begin_[d]).count());
            double all = 0;
            for (size_t i = 0; i < plan_[d].count; ++i) all += thread_seconds(d, i);
            for (size_t i = 0; i < plan_[d].count; ++i) {
                const double spent = thread_seconds(d, i);
                timer.add(*plan_[d].step[i], tokens, all > 0 ? wall * spent / all : 0, spent);
            }
        }
    }

  private:
    using Clock = std::chrono::steady_clock;
    static double seconds(int64_t ticks) {
        return std::chrono::duration<double>(Clock::duration(ticks)).count();
    }
    double thread_seconds(size_t d, size_t i) const {
        return seconds(ticks_[d * Dispatch::kMostSteps + i].load(std::memory_order_relaxed));
    }

    std::span<const Dispatch> plan_;
    std::vector<Clock::time_point> begin_;           // of each dispatch, and the end
    std::unique_ptr<std::atomic<int64_t>[]> ticks_;  // of each step, over all threads
};

}  // namespace

void run_steps(std::span<const Step> steps, const Tokens& tokens, cpu::ThreadPool& pool,
               StepTimer* timer) {
    if (tokens.watch) tokens.watch->begins(steps, tokens);
    const std::vector<Dispatch> plan = plan_dispatches(steps, tokens, pool.size());
    if (timer) {
        Meter meter(plan);
        meter.run(tokens, pool);
        meter.report(tokens, *timer);
    } else {
        pool.run(
            uint32_t(plan.size()), [&](uint32_t d) { return plan[d].claims(); },
            [&](uint32_t d, uint32_t claim, unsigned) {
                plan[d].for_claim(
                    claim, [&](size_t i, uint32_t part) { do_part(plan[d], i, part, tokens); });
            });
    }
    if (tokens.watch) tokens.watch->ends(steps, tokens);
}

uint64_t bytes_moved(std::span<const Step> steps, const Tokens& tokens) {
    uint64_t bytes = 0;
    for (const Step& step : steps)
        if (has_rows(step, tokens)) bytes += row_of(step.op).bytes(step, tokens);
    return bytes;
}

}  // namespace hf
