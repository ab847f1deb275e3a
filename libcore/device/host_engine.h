// HostEngine: the host device's own thread, as a card's stream.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>

#include "cpuexec/thread_pool.h"
#include "libcore/model/steps.h"
#include "libcore/model/tokens.h"

namespace hf {

struct StepProfile;

/// Runs lists of steps one after the other, on a thread of its own and the team of a pool that
/// nobody else uses meanwhile.
class HostEngine {
  public:
    HostEngine(cpu::ThreadPool& pool, StepProfile* profile)
        : pool_(pool), profile_(profile), thread_(&HostEngine::work, this) {}
    /// Finishes what was submitted.
    ~HostEngine();
    HostEngine(const HostEngine&) = delete;
    HostEngine& operator=(const HostEngine&) = delete;

    void submit(std::span<const Step> steps, const Tokens& tokens);
    /// Returns when everything is done; what was written is seen by the caller.
    void wait();

  private:
    struct Job {
        std::span<const Step> steps;
        Tokens tokens;
    };
    void work();

    cpu::ThreadPool& pool_;
    StepProfile* profile_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> jobs_;  // the first one is running
    bool is_ending_ = false;
    std::thread thread_;  // the last member: it uses the others
};

}  // namespace hf
