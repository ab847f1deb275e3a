// Sampler: picks the next token from logits.
//
// The order of its stages is that of Hugging Face transformers:
//   ids that the tokenizer does not know are never picked
//   repetition penalty     every id in the prompt or the answer, once: logit / p if positive, else
//   * p presence, frequency    every id in the answer: logit - presence - count * frequency
//   temperature 0          the largest logit, the lowest id among equals; nothing below applies
//   temperature            logit / temperature
//   top_k                  the k largest
//   softmax
//   top_p                  the smallest set of largest probabilities whose sum reaches p
//   min_p                  those with at least min_p times the largest probability
//   one draw
// Among equal logits the lower id counts as the larger one. The set is never empty.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hf {

/// The defaults are neutral: plain sampling from what the model says.
struct SamplingOptions {
    float temperature = 1;         // 0: greedy
    uint32_t top_k = 0;            // 0: all
    float top_p = 1;               // [0, 1]
    float min_p = 0;               // [0, 1]
    float repetition_penalty = 1;  // above 0
    float presence_penalty = 0;
    float frequency_penalty = 0;
    uint64_t seed = 0;

    bool is_greedy() const { return temperature == 0; }
};

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014):
/// written out, so that a seed gives the same text everywhere.
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next();
    double uniform() { return double(next() >> 11) * 0x1p-53; }  // [0, 1), multiples of 2^-53

  private:
    uint64_t state_;
};

/// What can be drawn. A weight is a probability times a constant.
struct Candidate {
    int32_t id;
    float logit;
    double weight;
};

/// Everything between the penalties and the draw, for temperatures above 0. Largest first when
/// top_k, top_p or min_p is in use, in the order given otherwise. All k of top_k are sorted, the
/// rest is not.
///
/// candidates  not empty, finite logits; weights are written
void narrow(std::vector<Candidate>& candidates, const SamplingOptions& options);

/// The candidate at share `uniform` of the weights, counted from the front.
int32_t draw(std::span<const Candidate> candidates, double uniform);

class Sampler {
  public:
    /// known  (vocab) which ids may be picked; empty: all
    explicit Sampler(const SamplingOptions& options, const std::vector<bool>& known = {});

    /// Tokens of the prompt, all below vocab: they count for the repetition penalty, not for the
    /// other two.
    void see_prompt(std::span<const int32_t> ids);

    /// Picks an id and remembers it as part of the answer.
    ///
    /// logits  (vocab) float32
    /// Errors  hf::Error for a NaN or +infinity among the known ids, or nothing left to pick
    int32_t pick(std::span<const float> logits);

  private:
    struct Seen {
        int32_t id;
        uint32_t in_answer;  // times
    };
    SamplingOptions options_;
    Random random_;
    size_t vocab_;                     // 0: any
    std::vector<int32_t> unknown_;     // ids that cannot be picked
    std::vector<Seen> seen_;           // in order of first appearance
    std::vector<int32_t> seen_index_;  // by id: index into seen_, or -1; grows as needed
    std::vector<float> penalised_;     // (vocab)
    std::vector<float> tops_;          // the largest of each block of them
    std::vector<float> sorted_tops_;   // scratch
    std::vector<Candidate> candidates_;

    Seen& remember(int32_t id);
    void penalise(std::span<const float> logits);
    void check_finite() const;
    void find_tops();
    int32_t likeliest() const;
    float lower_bound_of(size_t keep);
    void gather_candidates();
};

}  // namespace hf
