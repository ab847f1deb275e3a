#include "libcore/run/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "libcore/base/error.h"

namespace hf {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool is_larger(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

bool is_smaller(const Candidate& a, const Candidate& b) {
    return is_larger(b, a);
}

/// Keeps the `keep` largest, sorted.
void keep_largest(std::vector<Candidate>& c, size_t keep) {
    std::partial_sort(c.begin(), c.begin() + ptrdiff_t(keep), c.end(), is_larger);
    c.resize(keep);
}

/// Keeps the largest ones, sorted, up to the one after which `enough` says so. Taken from a heap:
/// what is never looked at is never sorted.
template <class Enough>
void keep_until(std::vector<Candidate>& c, Enough enough) {
    std::vector<Candidate> kept;
    std::make_heap(c.begin(), c.end(), is_smaller);
    while (!c.empty()) {
        std::pop_heap(c.begin(), c.end(), is_smaller);
        kept.push_back(c.back());
        c.pop_back();
        if (enough(kept.back())) break;
    }
    c.swap(kept);
}

/// Weights relative to the largest logit, whose weight is 1; returns their sum.
double weigh(std::vector<Candidate>& c, float temperature) {
    const double largest = std::min_element(c.begin(), c.end(), is_larger)->logit;
    double sum = 0;
    for (Candidate& candidate : c) {
        candidate.weight = std::exp((double(candidate.logit) - largest) / double(temperature));
        sum += candidate.weight;
    }
    return sum;
}

}  // namespace

uint64_t Random::next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

void narrow(std::vector<Candidate>& candidates, const SamplingOptions& options) {
    if (options.top_k > 0)
        keep_largest(candidates, std::min<size_t>(options.top_k, candidates.size()));
    const double sum = weigh(candidates, options.temperature);

    if (options.top_p < 1) {
        double reached = 0;
        keep_until(candidates, [&](const Candidate& c) {
            reached += c.weight;
            return reached >= double(options.top_p) * sum;
        });
    }
    if (options.min_p > 0) {  // the largest weight is 1
        std::erase_if(candidates,
                      [&](const Candidate& c) { return c.weight < double(options.min_p); });
        std::sort(candidates.begin(), candidates.end(), is_larger);
    }
}

int32_t draw(std::span<const Candidate> candidates, double uniform) {
    double sum = 0;
    for (const Candidate& c : candidates) sum += c.weight;
    const double target = std::min(uniform * sum, std::nextafter(sum, 0.0));  // may round up to sum
    double reached = 0;
    for (const Candidate& c : candidates) {
        reached += c.weight;
        if (reached > target) return c.id;
    }
    return candidates.back().id;  // not reached: reached ends at sum
}

Sampler::Sampler(const SamplingOptions& options, std::vector<bool> known)
    : options_(options), random_(options.seed), known_(std::move(known)) {}

Sampler::Seen& Sampler::remember(int32_t id) {
    HF_ASSERT(id >= 0);
    if (size_t(id) >= seen_index_.size()) seen_index_.resize(size_t(id) + 1, -1);
    int32_t& index = seen_index_[size_t(id)];
    if (index < 0) {
        index = int32_t(seen_.size());
        seen_.push_back({id, 0});
    }
    return seen_[size_t(index)];
}

void Sampler::see_prompt(std::span<const int32_t> ids) {
    for (int32_t id : ids) remember(id);
}

/// Fills penalised_: what is not known cannot be picked, what was seen less easily.
void Sampler::penalise(std::span<const float> logits) {
    penalised_.assign(logits.begin(), logits.end());
    for (size_t id = 0; id < known_.size(); ++id)
        if (!known_[id]) penalised_[id] = kNever;
    for (const Seen& s : seen_) {
        float& logit = penalised_.at(size_t(s.id));
        logit =
            logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
        if (s.in_answer > 0)
            logit -= options_.presence_penalty + float(s.in_answer) * options_.frequency_penalty;
    }
    for (size_t id = 0; id < penalised_.size(); ++id)
        if (!(penalised_[id] <= std::numeric_limits<float>::max()))
            throw Error(
                fmt::format("the logit of token {} is {}: the model's weights are damaged, or "
                            "its configuration does not belong to them",
                            id, penalised_[id]));
}

int32_t Sampler::pick(std::span<const float> logits) {
    HF_ASSERT(known_.empty() || known_.size() == logits.size());
    penalise(logits);
    const auto largest =
        std::max_element(penalised_.begin(), penalised_.end());  // the first of equals
    if (largest == penalised_.end() || *largest == kNever)
        throw Error(
            fmt::format("none of {} logits belongs to a token that can be picked: the vocabulary "
                        "of the tokenizer is not the model's, or the weights are damaged",
                        logits.size()));
    int32_t id = int32_t(largest - penalised_.begin());
    if (!options_.is_greedy()) {
        candidates_.clear();
        for (size_t i = 0; i < penalised_.size(); ++i)
            if (penalised_[i] > kNever) candidates_.push_back({int32_t(i), penalised_[i], 0});
        narrow(candidates_, options_);
        id = draw(candidates_, random_.uniform());
    }
    ++remember(id).in_answer;
    return id;
}

}  // namespace hf
