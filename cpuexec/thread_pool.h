// ThreadPool: threads that do the steps of a job one after another, each step cut into parts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace hf::cpu {

struct PoolOptions {
    /// How long a member without work keeps its core before it sleeps. Waking a sleeper costs some
    /// 20 to 50 us, so the short steps of a token should not send anybody to sleep; and one who
    /// waits for a member whose core was taken away should soon give up its own, for then the
    /// scheduler gives it back at once when there is work.
    uint32_t spin_us = 20;
    /// Members that a job keeps awake, the caller included; 0: as many as there are CPUs. More
    /// would only take cores from each other.
    unsigned awake = 0;
};

/// What run() does: steps 0 .. steps - 1 in order; what one writes is seen by the next. The
/// functions must not throw, and none may call run().
struct Job {
    uint32_t steps = 0;
    /// Into how many parts a step is cut, below 2^31; 0 skips it. Asked once per step, when the one
    /// before is done and nobody works.
    uint32_t (*parts)(void* context, uint32_t step) = nullptr;
    /// Does one part. Parts of a step run at once, on any members (0 .. size() - 1, 0 is the thread
    /// that called run()), so results must not depend on who does what.
    void (*work)(void* context, uint32_t step, uint32_t part, unsigned member) = nullptr;
    void* context = nullptr;
};

/// Owns the threads. The caller of run() is a member, so a pool of one starts none.
///
/// Parts are claimed one by one, and only those who hold a part are waited for: a member that is
/// late, asleep, or whose core was taken away holds up nobody. Idle members sleep.
class ThreadPool {
  public:
    /// 1 to 1024 threads. Errors: std::invalid_argument for other numbers, std::system_error when
    /// the system has no more threads; none are left behind.
    explicit ThreadPool(unsigned threads, PoolOptions options = {});
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    unsigned size() const { return size_; }

    /// Returns when all steps are done; what they wrote is seen by the caller. One call at a time.
    void run(const Job& job);

    /// The same for anything that can be called as parts(step) and work(step, part, member).
    template <class Parts, class Work>
    void run(uint32_t steps, Parts&& parts, Work&& work) {
        struct Both {
            std::remove_reference_t<Parts>& parts;
            std::remove_reference_t<Work>& work;
        } both{parts, work};
        run({.steps = steps,
             .parts = [](void* c, uint32_t step) -> uint32_t {
                 return static_cast<Both*>(c)->parts(step);
             },
             .work = [](void* c, uint32_t step, uint32_t part,
                        unsigned member) { static_cast<Both*>(c)->work(step, part, member); },
             .context = &both});
    }

    /// One step: work(part, member).
    template <class Work>
    void run(uint32_t parts, Work&& work) {
        run(
            1, [&](uint32_t) { return parts; },
            [&](uint32_t, uint32_t part, unsigned member) { work(part, member); });
    }

  private:
    void take_part_in(uint64_t turn, unsigned member);
    uint64_t claim();
    uint64_t do_claim(uint64_t turn, unsigned member);
    uint64_t begin(uint32_t number, uint32_t step);
    void wake_for(uint32_t claims);
    void wait_past(uint32_t number, bool is_caller);
    void sleep(uint32_t number, bool is_caller);
    void wake(uint32_t wanted, uint32_t whom);
    void stop();

    unsigned size_;
    PoolOptions options_;
    std::vector<std::thread> threads_;

    // Written by who begins a job or a step, read by those who hold a claim of it.
    Job job_;
    uint32_t step_ = 0;
    uint32_t parts_ = 0;
    uint32_t parts_per_claim_ = 1;

    // The turn: what is to be done now, in one word, so that a claim is one addition.
    //   bits 63..32  number of the turn, which sleepers wait on
    //        31..16  claims that the step has; 0: there is no job
    //        15..0   next claim; each member may run past the end by one
    alignas(64) std::atomic<uint64_t> turn_ = 0;
    alignas(64) std::atomic<uint32_t> done_ =
        0;  // claims of this turn; the last one begins the next
    alignas(64) std::atomic<uint32_t> asleep_ = 0;
    std::atomic<bool> is_stopping_ = false;
};

}  // namespace hf::cpu
