#include "libcore/load/admission.h"

#include <fmt/format.h>

#include "libcore/base/checked.h"
#include "libcore/base/error.h"

namespace hf {
namespace {

double gib(uint64_t bytes) {
    return double(bytes) / double(1ull << 30);
}

}  // namespace

bool HostTier::reserve(uint64_t bytes) {
    const auto sum = checked_add(used_, bytes);
    if (!sum || *sum > budget_) return false;
    used_ = *sum;
    return true;
}

void HostTier::give_back(uint64_t bytes) {
    HF_ASSERT(bytes <= used_);
    used_ -= bytes;
}

std::string Admission::text() const {
    switch (verdict) {
        case Verdict::admitted:
            break;
        case Verdict::pool_full:
            return "all sessions are taken";
        case Verdict::would_exceed:
            return fmt::format("{:.2f} GiB are needed, but {:.2f} GiB are available", gib(need),
                               gib(available));
        case Verdict::unknown_session:
            return "there is no such session";
    }
    return "admitted";
}

AdmissionController::AdmissionController(const ModelFootprint& model, uint64_t device_budget,
                                         uint64_t host_budget, uint32_t most_sessions)
    : model_(model),
      budget_(device_budget),
      host_tier_(host_budget, model.pinned_bytes),
      most_sessions_(most_sessions) {}

/// A need that does not fit 64 bits is refused like any other that is too large.
Admission AdmissionController::charge(uint64_t fixed_bytes, uint64_t tokens) {
    const auto growing = checked_mul(tokens, model_.kv_bytes_per_token);
    const uint64_t need =
        checked_add(fixed_bytes, growing.value_or(UINT64_MAX)).value_or(UINT64_MAX);
    const uint64_t available = budget_ - used_;  // used_ is always below the budget, or 0
    if (need >= available) return {Verdict::would_exceed, need, available};
    used_ += need;
    return {};
}

Admission AdmissionController::admit(uint64_t session, uint64_t tokens) {
    HF_ASSERT(!tokens_.contains(session));
    if (tokens_.size() >= most_sessions_) return {Verdict::pool_full, 0, 0};
    const uint64_t weights = tokens_.empty() ? model_.weight_bytes : 0;
    const auto fixed = checked_add(weights, model_.session_bytes);
    const Admission admission = charge(fixed.value_or(UINT64_MAX), tokens);
    if (admission.ok()) tokens_[session] = tokens;
    return admission;
}

Admission AdmissionController::resize(uint64_t session, uint64_t tokens) {
    const auto found = tokens_.find(session);
    if (found == tokens_.end()) return {Verdict::unknown_session, 0, 0};
    uint64_t& held = found->second;
    if (tokens < held) {
        used_ -= (held - tokens) * model_.kv_bytes_per_token;
    } else if (tokens > held) {
        const Admission admission = charge(0, tokens - held);
        if (!admission.ok()) return admission;
    }
    held = tokens;
    return {};
}

void AdmissionController::release(uint64_t session) {
    const auto found = tokens_.find(session);
    if (found == tokens_.end()) return;
    used_ -= model_.session_bytes + found->second * model_.kv_bytes_per_token;
    tokens_.erase(found);
    if (tokens_.empty()) used_ -= model_.weight_bytes;
    HF_ASSERT(!tokens_.empty() || used_ == 0);
}

}  // namespace hf
