// ThreadPool: a fixed team of threads that runs one job at a time, all members at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace hf::cpu {

/// How long a waiting member keeps its core before it sleeps: it spins, then yields, then parks.
/// Waking a sleeper costs some 20 to 50 us, so a token should not be interrupted by sleep.
struct PoolOptions {
    uint32_t spin_us = 20;  // not used when there are more threads than CPUs
    uint32_t yield_us = 100;
};

/// A counter that one side advances and others wait for, spinning first and sleeping later.
class Signal {
  public:
    uint32_t now() const { return count_.load(std::memory_order_acquire); }
    /// Everything written before is seen by those who wait.
    void advance();
    /// Returns when the counter is no longer `seen`.
    void wait_past(uint32_t seen, const PoolOptions& patience);

  private:
    void park(uint32_t seen);

    std::atomic<uint32_t> count_ = 0;
    std::atomic<uint32_t> parked_ = 0;
};

/// What the members share, each part on a cache line of its own.
struct TeamState {
    PoolOptions patience;
    unsigned size = 1;
    alignas(64) std::atomic<uint32_t> next_part = 0;
    alignas(64) std::atomic<uint32_t> arrived = 0;
    alignas(64) Signal step;   // advances when all have arrived
    alignas(64) Signal start;  // advances when there is a job
};

/// What a member sees inside a job. All members must make the same sequence of barriers.
class Team {
  public:
    unsigned member() const { return member_; }  // 0 is the thread that called run()
    unsigned size() const { return state_.size; }

    /// Next unclaimed part of the current step: 0, 1, 2, ...; the caller stops when it is at least
    /// the number of parts.
    uint32_t next_part() {
        if (state_.size == 1) return alone_++;
        return state_.next_part.fetch_add(1, std::memory_order_relaxed);
    }

    /// All members arrive, the part counter restarts at 0, all go on. What a member wrote before it
    /// is seen by all after it.
    void barrier();

  private:
    friend class ThreadPool;
    Team(TeamState& state, unsigned member) : state_(state), member_(member) {}
    void arrive();

    TeamState& state_;
    unsigned member_;
    uint32_t alone_ = 0;  // the part counter of a team of one
};

/// Owns the threads. The caller of run() is a member, so a pool of one starts none.
///
/// Work is handed out in parts that members claim as they get to them, so a late member costs one
/// part, and results must not depend on who computed them. Idle members sleep.
class ThreadPool {
  public:
    /// 1 to 1024 threads. Errors: std::invalid_argument for other numbers, std::system_error when
    /// the system has no more threads; none are left behind.
    explicit ThreadPool(unsigned threads, PoolOptions options = {});
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    unsigned size() const { return state_.size; }

    /// Runs job on every member and returns when all have finished; what they wrote is seen by the
    /// caller. One call at a time, and none from inside a job. The job must not throw.
    void run(void (*job)(void* context, Team& team), void* context);

    /// The same for anything that can be called with a Team&.
    template <class Job>
    void run(Job&& job) {
        using Plain = std::remove_reference_t<Job>;
        run([](void* context, Team& team) { (*static_cast<Plain*>(context))(team); },
            const_cast<void*>(static_cast<const void*>(std::addressof(job))));
    }

  private:
    void work(unsigned member);
    void stop();

    TeamState state_;
    void (*job_)(void*, Team&) = nullptr;  // null at a start: the end
    void* context_ = nullptr;
    std::vector<std::thread> threads_;
};

}  // namespace hf::cpu
