#include "libcore/device/host_engine.h"

#include "libcore/ops/run_steps.h"

namespace hf {

HostEngine::~HostEngine() {
    {
        const std::lock_guard lock(mutex_);
        is_ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void HostEngine::submit(std::span<const Step> steps, const Tokens& tokens) {
    {
        const std::lock_guard lock(mutex_);
        jobs_.push_back({steps, tokens});
    }
    changed_.notify_all();
}

void HostEngine::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return jobs_.empty(); });
}

void HostEngine::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return !jobs_.empty() || is_ending_; });
        if (jobs_.empty()) return;
        const Job job = jobs_.front();
        lock.unlock();
        run_steps(job.steps, job.tokens, pool_, profile_);
        lock.lock();
        jobs_.pop_front();
        changed_.notify_all();
    }
}

}  // namespace hf
