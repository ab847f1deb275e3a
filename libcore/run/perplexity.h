// Perplexity: how well a model predicts a given text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libcore/exec/session.h"
#include "libcore/run/generate.h"
#include "libcore/run/prompt.h"
#include "libcore/text/tokenizer.h"

namespace hf {

/// Runs the ids once and returns -ln p(ids[i + 1] | ids[0 .. i]) for i = 0 .. n - 2, in nats. Their
/// mean is the negative log likelihood; the perplexity is exp(mean).
///
/// session  empty or with committed tokens before the text, max_logits = Session::kMaxTokens
/// ids      at least 2, no more than session.room()
/// Order    float64, log-sum-exp over the vocabulary in id order, around the largest logit
/// Errors   hf::Error(usage) for fewer than 2 ids, else see check_prompt
std::vector<double> negative_log_likelihoods(Session& session, std::span<const int32_t> ids,
                                             const Progress& progress = {});

/// Arithmetic mean; of nothing it is 0.
double mean(std::span<const double> values);

/// Tokens [begin, end) of a text go through an empty context, and those from `predict` on count.
struct TextWindow {
    size_t begin, predict, end;
    bool operator==(const TextWindow&) const = default;
};

/// Windows of at most `size` tokens, 2 or more, over a text. Each token but the first is predicted
/// in exactly one of them, the first one with what is left of the window before it, and all later
/// ones with at least half a window: the next window repeats the last half of the one before.
std::vector<TextWindow> text_windows(size_t tokens, size_t size);

/// The ids that a tokenizer puts in front of every text, begin of text for example; often none.
std::vector<int32_t> ids_in_front(const Tokenizer& tokenizer);

struct TextScore {
    uint64_t tokens = 0;     // of the text
    uint64_t predicted = 0;  // of these: the first one only if something is in front of it
    uint32_t windows = 0;
    double mean_nll = 0;  // nats per predicted token
    Phase passes;         // its tokens are those that went through the model, repeated ones too

    double perplexity() const;  // exp(mean_nll)
};

/// Errors  hf::Error(usage) naming the text, when so many tokens hold none that something is before
void check_predictable(std::string_view label, size_t tokens, size_t in_front);

/// How well a model predicts a text of any length.
///
/// session  empty, max_logits = Session::kMaxTokens; its room is the size of a window
/// text     without `front`, which is put in front of each window
/// Errors   hf::Error(usage) for nothing to predict, or a room that holds no window of 2; hf::Error
///          naming the token whose likelihood is not finite; else see check_prompt
TextScore score_text(Session& session, std::span<const int32_t> text,
                     std::span<const int32_t> front, const Progress& progress = {});

}  // namespace hf
