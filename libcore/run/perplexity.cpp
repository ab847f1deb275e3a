#include "libcore/run/perplexity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/run/prompt.h"

namespace hf {
namespace {

/// -ln softmax(logits)[id]
double negative_log_likelihood(std::span<const float> logits, int32_t id) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float logit : logits) sum += std::exp(double(logit) - largest);
    return largest + std::log(sum) - double(logits[size_t(id)]);
}

constexpr auto kAllRows = [] {
    std::array<uint32_t, Session::kMaxTokens> rows{};
    std::iota(rows.begin(), rows.end(), 0u);
    return rows;
}();

}  // namespace

std::vector<double> negative_log_likelihoods(Session& session, std::span<const int32_t> ids) {
    if (ids.size() < 2)
        throw Error(
            fmt::format("the text has {} tokens, but perplexity needs 2 at least", ids.size()),
            Fault::usage);
    check_prompt(ids, session);
    std::vector<double> nll;
    nll.reserve(ids.size() - 1);
    for (size_t done = 0; done < ids.size();) {
        const uint32_t count = piece_size(session.length(), ids.size() - done);
        const auto logits =
            session.forward(ids.subspan(done, count), std::span(kAllRows).first(count));
        const size_t vocab = logits.size() / count;
        for (size_t t = 0; t < count && done + t + 1 < ids.size(); ++t)
            nll.push_back(
                negative_log_likelihood(logits.subspan(t * vocab, vocab), ids[done + t + 1]));
        session.commit(count);
        done += count;
    }
    return nll;
}

double mean(std::span<const double> values) {
    if (values.empty()) return 0;
    return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

}  // namespace hf
