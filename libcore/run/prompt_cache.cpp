#include "libcore/run/prompt_cache.h"

#include <algorithm>

#include "libcore/base/error.h"

namespace hf {
namespace {

using Ids = std::span<const int32_t>;

uint32_t common_length(Ids a, Ids b) {
    const auto [at, other] = std::ranges::mismatch(a, b);
    return uint32_t(at - a.begin());
}

}  // namespace

/// The cache's rows behind the common beginning are forgotten; no state has to be brought back.
uint32_t PromptCache::cut(Ids prompt) {
    const uint32_t held =
        std::min(common_length(session_.ids(), prompt), uint32_t(prompt.size()) - 1);
    session_.restore({{prompt.begin(), prompt.begin() + held}, {}});
    return held;
}

uint32_t PromptCache::rewind(Ids prompt) {
    HF_ASSERT(!prompt.empty());
    const uint64_t bytes = session_.state_layout().recurrent_bytes;
    if (bytes == 0) return cut(prompt);
    std::erase_if(points_, [&](const Checkpoint& point) {
        return point.ids.size() >= prompt.size() ||
               common_length(point.ids, prompt) < point.ids.size();
    });
    session_.restore(points_.empty() ? Checkpoint{{}, std::vector<std::byte>(bytes)}
                                     : points_.back());
    return session_.length();
}

void PromptCache::keep(uint32_t fork) {
    const uint32_t at = session_.length();
    const bool is_wanted = at % Session::kMaxTokens == 0 && at + Session::kMaxTokens > fork;
    const uint64_t bytes = session_.state_layout().recurrent_bytes;
    const bool is_kept = !points_.empty() && points_.back().ids.size() == at;
    if (!is_wanted || is_kept || bytes == 0) return;
    const size_t most = std::clamp<uint64_t>(kMostBytes / bytes, 1, kMostPoints);
    if (points_.size() >= most) points_.erase(points_.begin());
    points_.push_back(session_.checkpoint());
}

std::vector<uint32_t> PromptCache::lengths() const {
    std::vector<uint32_t> lengths;
    for (const Checkpoint& point : points_) lengths.push_back(uint32_t(point.ids.size()));
    return lengths;
}

}  // namespace hf
