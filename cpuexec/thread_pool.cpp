// ThreadPool: a fixed team of threads that runs one job at a time.
//
// A job begins when `start` advances and ends with a barrier that only the caller waits for: the
// others go straight back to waiting for the next start, which cannot come before all have arrived.
#include "cpuexec/thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <stdexcept>

namespace hf::cpu {
namespace {

/// CPUs in the calling thread's affinity mask.
unsigned usable_cpus() {
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return UINT_MAX;  // more than 1024 CPUs
    return unsigned(CPU_COUNT(&mask));
}

}  // namespace

void Signal::advance() {
    // A sleeper counts itself and then looks at count_; we change count_ and then look for
    // sleepers. In one total order of the four (seq_cst) at least one side sees the other.
    count_.fetch_add(1, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst) != 0)
        syscall(SYS_futex, &count_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Signal::park(uint32_t seen) {
    parked_.fetch_add(1, std::memory_order_seq_cst);
    while (count_.load(std::memory_order_seq_cst) == seen)
        syscall(SYS_futex, &count_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    parked_.fetch_sub(1, std::memory_order_relaxed);
}

void Signal::wait_past(uint32_t seen, const PoolOptions& patience) {
    using Clock = std::chrono::steady_clock;
    if (now() != seen) return;
    const auto begin = Clock::now();
    const auto spin_end = begin + std::chrono::microseconds(patience.spin_us);
    const auto yield_end = spin_end + std::chrono::microseconds(patience.yield_us);
    while (Clock::now() < spin_end)
        for (int i = 0; i < 16; ++i) {
            if (now() != seen) return;
            __builtin_ia32_pause();
        }
    while (Clock::now() < yield_end) {
        if (now() != seen) return;
        std::this_thread::yield();
    }
    park(seen);
}

void Team::arrive() {
    if (state_.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 != state_.size) return;
    state_.arrived.store(0, std::memory_order_relaxed);
    state_.next_part.store(0, std::memory_order_relaxed);
    state_.step.advance();
}

void Team::barrier() {
    if (state_.size == 1) {
        alone_ = 0;
        return;
    }
    const uint32_t step = state_.step.now();  // cannot advance before we arrive
    arrive();
    state_.step.wait_past(step, state_.patience);
}

ThreadPool::ThreadPool(unsigned threads, PoolOptions options) {
    if (threads < 1 || threads > 1024)
        throw std::invalid_argument("a thread pool has 1 to 1024 threads");
    if (threads > usable_cpus()) options.spin_us = 0;
    state_.patience = options;
    state_.size = threads;
    threads_.reserve(threads - 1);
    try {
        for (unsigned m = 1; m < threads; ++m) threads_.emplace_back(&ThreadPool::work, this, m);
    } catch (...) {
        stop();
        throw;
    }
}

ThreadPool::~ThreadPool() {
    stop();
}

void ThreadPool::stop() {
    job_ = nullptr;
    state_.start.advance();
    for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(void (*job)(void*, Team&), void* context) {
    Team team(state_, 0);
    if (state_.size == 1) {
        job(context, team);
        return;
    }
    job_ = job;
    context_ = context;
    state_.start.advance();
    job(context, team);
    team.barrier();
}

void ThreadPool::work(unsigned member) {
    Team team(state_, member);
    for (uint32_t seen = 0;; ++seen) {
        state_.start.wait_past(seen, state_.patience);
        if (job_ == nullptr) return;
        job_(context_, team);
        team.arrive();
    }
}

}  // namespace hf::cpu
