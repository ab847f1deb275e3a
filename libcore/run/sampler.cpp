#include "libcore/run/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

constexpr size_t kBlock = 64;

/// The largest of a block, of lanes that a compiler makes vectors of; no NaN is among them.
float largest_of(std::span<const float> x) {
    constexpr size_t kLanes = 16;
    float lane[kLanes];
    std::fill_n(lane, kLanes, kNever);
    size_t i = 0;
    for (; i + kLanes <= x.size(); i += kLanes)
        for (size_t l = 0; l < kLanes; ++l) lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
    float most = *std::ranges::max_element(lane);
    for (; i < x.size(); ++i) most = std::max(most, x[i]);
    return most;
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

Sampler::Sampler(const SamplingOptions& options, const std::vector<bool>& known)
    : options_(options), random_(options.seed), vocab_(known.size()) {
    for (size_t id = 0; id < known.size(); ++id)
        if (!known[id]) unknown_.push_back(int32_t(id));
}

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
    for (const int32_t id : unknown_) penalised_[size_t(id)] = kNever;
    for (const Seen& s : seen_) {
        float& logit = penalised_.at(size_t(s.id));
        logit =
            logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
        if (s.in_answer > 0)
            logit -= options_.presence_penalty + float(s.in_answer) * options_.frequency_penalty;
    }
}

void Sampler::check_finite() const {
    const auto is_fine = [](float logit) { return logit <= std::numeric_limits<float>::max(); };
    uint32_t damaged = 0;
    for (const float logit : penalised_) damaged += !is_fine(logit);
    if (damaged == 0) return;
    const size_t id = size_t(std::ranges::find_if_not(penalised_, is_fine) - penalised_.begin());
    throw Error(
        fmt::format("the logit of token {} is {}: the model's weights are damaged, or "
                    "its configuration does not belong to them",
                    id, penalised_[id]));
}

/// Blocks, so that the rest of a vocabulary need not be looked at one by one.
void Sampler::find_tops() {
    tops_.clear();
    for (size_t first = 0; first < penalised_.size(); first += kBlock)
        tops_.push_back(largest_of(std::span(penalised_)
                                       .subspan(first)
                                       .first(std::min(kBlock, penalised_.size() - first))));
}

/// The first of equals.
int32_t Sampler::likeliest() const {
    const auto top = std::ranges::max_element(tops_);
    if (top == tops_.end() || *top == kNever)
        throw Error(
            fmt::format("none of {} logits belongs to a token that can be picked: the vocabulary "
                        "of the tokenizer is not the model's, or the weights are damaged",
                        penalised_.size()));
    const auto block = penalised_.begin() + (top - tops_.begin()) * ptrdiff_t(kBlock);
    return int32_t(std::find(block, penalised_.end(), *top) - penalised_.begin());
}

/// At least `keep` logits are no smaller: the tops of so many blocks are among them.
float Sampler::lower_bound_of(size_t keep) {
    if (keep == 0 || keep > tops_.size()) return kNever;
    sorted_tops_ = tops_;
    const auto last = sorted_tops_.begin() + ptrdiff_t(keep - 1);
    std::ranges::nth_element(sorted_tops_, last, std::greater());
    return *last;
}

/// All that can be picked; where only the largest will stay, those that may be among them.
void Sampler::gather_candidates() {
    const float least = lower_bound_of(options_.top_k);
    candidates_.clear();
    for (size_t b = 0; b < tops_.size(); ++b) {
        if (tops_[b] < least) continue;
        const size_t end = std::min((b + 1) * kBlock, penalised_.size());
        for (size_t i = b * kBlock; i < end; ++i)
            if (penalised_[i] > kNever && penalised_[i] >= least)
                candidates_.push_back({int32_t(i), penalised_[i], 0});
    }
}

int32_t Sampler::pick(std::span<const float> logits) {
    HF_ASSERT(vocab_ == 0 || vocab_ == logits.size());
    penalise(logits);
    check_finite();
    find_tops();
    int32_t id = likeliest();
    if (!options_.is_greedy()) {
        gather_candidates();
        narrow(candidates_, options_);
        id = draw(candidates_, random_.uniform());
    }
    ++remember(id).in_answer;
    return id;
}

}  // namespace hf
