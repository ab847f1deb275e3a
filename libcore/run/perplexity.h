// Perplexity: how well a model predicts a given text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libcore/exec/session.h"

namespace hf {

/// Runs the ids once and returns -ln p(ids[i + 1] | ids[0 .. i]) for i = 0 .. n - 2, in nats. Their
/// mean is the negative log likelihood; the perplexity is exp(mean).
///
/// session  empty or with committed tokens before the text, max_logits = Session::kMaxTokens
/// ids      at least 2, no more than session.room()
/// Order    float64, log-sum-exp over the vocabulary in id order, around the largest logit
/// Errors   hf::Error(usage) for fewer than 2 ids, else see check_prompt
std::vector<double> negative_log_likelihoods(Session& session, std::span<const int32_t> ids);

/// Arithmetic mean; of nothing it is 0.
double mean(std::span<const double> values);

}  // namespace hf
