// ThreadPool: threads that do the steps of a job one after another, each step cut into parts.
//
// Whoever finishes the last claim of a step begins the next one, by storing a new turn. Everything
// that says who may do what is in that word: a member that was away for any time adds one to
// whatever stands there when it comes back, and either holds a claim of the step that runs now, or
// none. So nobody needs to know whether it is on its way.
#include "cpuexec/thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <climits>
#include <stdexcept>
#include <string>
#include <system_error>

namespace hf::cpu {
namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr uint32_t kMaxClaims = 0xffff - kMaxThreads;  // so that `next` cannot overflow

constexpr uint64_t make_turn(uint32_t number, uint32_t claims) {
    return uint64_t(number) << 32 | uint64_t(claims) << 16;
}
constexpr uint32_t number_of(uint64_t turn) {
    return uint32_t(turn >> 32);
}
constexpr uint32_t claims_of(uint64_t turn) {
    return turn >> 16 & 0xffff;
}
constexpr uint32_t next_of(uint64_t turn) {
    return turn & 0xffff;
}
constexpr bool has_claim(uint64_t turn) {
    return next_of(turn) < claims_of(turn);
}

/// The half of the turn that the kernel compares before it lets a thread sleep.
uint32_t* number_address(std::atomic<uint64_t>& turn) {
    static_assert(std::endian::native == std::endian::little);
    return reinterpret_cast<uint32_t*>(&turn) + 1;
}

// Whom a wake-up may reach.
constexpr uint32_t kCaller = 1, kMember = 2;

/// CPUs in the calling thread's affinity mask.
unsigned usable_cpus() {
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return kMaxThreads;  // more than 1024 CPUs
    return unsigned(CPU_COUNT(&mask));
}

}  // namespace

ThreadPool::ThreadPool(unsigned threads, PoolOptions options) : size_(threads), options_(options) {
    if (threads < 1 || threads > kMaxThreads)
        throw std::invalid_argument("a thread pool has 1 to 1024 threads");
    if (options_.awake == 0) options_.awake = usable_cpus();
    threads_.reserve(threads - 1);
    try {
        for (unsigned m = 1; m < threads; ++m)
            threads_.emplace_back(&ThreadPool::take_part_in, this, 0, m);
    } catch (const std::system_error& error) {
        const size_t started = threads_.size() + 1;
        stop();
        throw std::system_error(
            error.code(), "only " + std::to_string(started) + " of " + std::to_string(threads) +
                              " threads could be started; ask for fewer (--threads), or raise the "
                              "limit on processes (ulimit -u) or on memory (ulimit -v)");
    } catch (...) {
        stop();
        throw;
    }
}

ThreadPool::~ThreadPool() {
    stop();
}

void ThreadPool::stop() {
    is_stopping_.store(true, std::memory_order_relaxed);
    turn_.store(make_turn(number_of(turn_.load(std::memory_order_relaxed)) + 1, 0),
                std::memory_order_seq_cst);
    wake(INT_MAX, kMember);
    for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(const Job& job) {
    if (size_ > 1) {
        job_ = job;
        take_part_in(begin(number_of(turn_.load(std::memory_order_relaxed)), 0), 0);
        return;
    }
    for (uint32_t step = 0; step < job.steps; ++step) {
        const uint32_t parts = job.parts(job.context, step);
        for (uint32_t part = 0; part < parts; ++part) job.work(job.context, step, part, 0);
    }
}

/// The life of a member that comes with this turn: the caller's ends with the job, that of the
/// others with the pool.
void ThreadPool::take_part_in(uint64_t turn, unsigned member) {
    const bool is_caller = member == 0;
    for (;;) {
        while (has_claim(turn)) turn = do_claim(turn, member);
        const bool is_idle = claims_of(turn) == 0;
        if (is_idle && (is_caller || is_stopping_.load(std::memory_order_relaxed))) return;
        wait_past(number_of(turn), is_caller);
        turn = claim();
    }
}

/// The turn as it is now, and, if it has_claim(), that claim.
uint64_t ThreadPool::claim() {
    const uint64_t turn = turn_.load(std::memory_order_acquire);
    return has_claim(turn) ? turn_.fetch_add(1, std::memory_order_acq_rel) : turn;
}

/// Does what was claimed and returns the next claim.
uint64_t ThreadPool::do_claim(uint64_t turn, unsigned member) {
    const uint32_t step = step_, first = next_of(turn) * parts_per_claim_;
    const uint32_t last = std::min(first + parts_per_claim_, parts_);
    for (uint32_t part = first; part < last; ++part) job_.work(job_.context, step, part, member);
    const bool is_last = done_.fetch_add(1, std::memory_order_acq_rel) + 1 == claims_of(turn);
    return is_last ? begin(number_of(turn), step + 1) : claim();
}

/// Begins the first step from `step` on that has parts, or ends the job; called while nobody holds
/// a claim. The first claim goes to the caller, whose cache has what the step before wrote.
uint64_t ThreadPool::begin(uint32_t number, uint32_t step) {
    uint32_t parts = 0;
    for (; step < job_.steps; ++step)
        if ((parts = job_.parts(job_.context, step)) > 0) break;
    step_ = step;
    parts_ = parts;
    parts_per_claim_ = parts / kMaxClaims + 1;
    const uint32_t claims = (parts + parts_per_claim_ - 1) / parts_per_claim_;
    const uint64_t turn = make_turn(number + 1, claims);
    done_.store(0, std::memory_order_relaxed);
    turn_.store(claims > 0 ? turn + 1 : turn, std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst) > 0) wake_for(claims);
    return turn;
}

/// Wakes as many as a step with so many claims has use for; for the end of a job, the caller.
void ThreadPool::wake_for(uint32_t claims) {
    if (claims == 0) return wake(1, kCaller);
    const uint32_t awake = size_ - std::min(size_, asleep_.load(std::memory_order_relaxed));
    const uint32_t useful = std::min({claims, options_.awake, size_});
    if (useful > awake) wake(useful - awake, kCaller | kMember);
}

void ThreadPool::wait_past(uint32_t number, bool is_caller) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::microseconds(options_.spin_us);
    do {
        for (int i = 0; i < 16; ++i) {
            if (number_of(turn_.load(std::memory_order_acquire)) != number) return;
            __builtin_ia32_pause();
        }
    } while (Clock::now() < end);
    sleep(number, is_caller);
}

/// A sleeper counts itself and then looks at the turn; begin() changes the turn and then looks for
/// sleepers. In one total order of the four (seq_cst) at least one side sees the other. Who wakes a
/// sleeper takes it off the count, so that the next step does not wake another one in its place.
void ThreadPool::sleep(uint32_t number, bool is_caller) {
    asleep_.fetch_add(1, std::memory_order_seq_cst);
    long woken = -1;
    if (number_of(turn_.load(std::memory_order_seq_cst)) == number)
        woken = syscall(SYS_futex, number_address(turn_), FUTEX_WAIT_BITSET_PRIVATE, number,
                        nullptr, nullptr, is_caller ? kCaller : kMember);
    if (woken != 0) asleep_.fetch_sub(1, std::memory_order_relaxed);
}

void ThreadPool::wake(uint32_t wanted, uint32_t whom) {
    const long woken = syscall(SYS_futex, number_address(turn_), FUTEX_WAKE_BITSET_PRIVATE, wanted,
                               nullptr, nullptr, whom);
    if (woken > 0) asleep_.fetch_sub(uint32_t(woken), std::memory_order_relaxed);
}

}  // namespace hf::cpu
