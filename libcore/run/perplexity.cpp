#include "libcore/run/perplexity.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "libcore/base/error.h"

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

std::vector<double> negative_log_likelihoods(Session& session, std::span<const int32_t> ids,
                                             const Progress& progress) {
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
        if (progress) progress(done, ids.size());
    }
    return nll;
}

double mean(std::span<const double> values) {
    if (values.empty()) return 0;
    return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

std::vector<TextWindow> text_windows(size_t tokens, size_t size) {
    HF_ASSERT(size >= 2);
    std::vector<TextWindow> windows;
    if (tokens > 0) windows.push_back({0, 1, std::min(tokens, size)});
    while (!windows.empty() && windows.back().end < tokens) {
        const size_t predict = windows.back().end, begin = predict - size / 2;
        windows.push_back({begin, predict, std::min(tokens, begin + size)});
    }
    return windows;
}

std::vector<int32_t> ids_in_front(const Tokenizer& tokenizer) {
    const EncodeOptions around{.parse_special = true, .add_special = true};
    const std::vector<int32_t> nothing = tokenizer.encode("", around);
    const std::vector<int32_t> letter = tokenizer.encode("x", around);
    const auto differ = std::ranges::mismatch(nothing, letter);
    return {nothing.begin(), differ.in1};
}

double TextScore::perplexity() const {
    return std::exp(mean_nll);
}

namespace {

/// The likelihoods of tokens [w.predict, w.end), the first window's from its first on if there is
/// something in front.
std::vector<double> score_window(Session& session, std::span<const int32_t> text,
                                 std::span<const int32_t> front, TextWindow w,
                                 const Progress& progress) {
    if (w.begin == 0 && !front.empty()) w.predict = 0;
    std::vector<int32_t> ids(front.begin(), front.end());
    ids.insert(ids.end(), text.begin() + ptrdiff_t(w.begin), text.begin() + ptrdiff_t(w.end));
    // The token before the first that is predicted begins the part whose logits are wanted.
    const size_t unscored = front.size() + w.predict - w.begin - 1;
    if (unscored > 0) {
        static const std::atomic<bool> never{false};
        feed_prompt(session, std::span(ids).first(unscored), progress, never);
    }
    return negative_log_likelihoods(session, std::span(ids).subspan(unscored),
                                    [&](size_t done, size_t) {
                                        if (progress) progress(unscored + done, ids.size());
                                    });
}

void check_finite(const Session& session, std::span<const double> nll, size_t first_token) {
    const auto bad = std::ranges::find_if(nll, [](double value) { return !std::isfinite(value); });
    if (bad == nll.end()) return;
    throw Error(
        fmt::format("{}: token {} of the text has a likelihood that is not finite; "
                    "hf-inspect --scan looks for damaged weights",
                    session.model().file->path, first_token + size_t(bad - nll.begin())));
}

}  // namespace

void check_predictable(std::string_view label, size_t tokens, size_t in_front) {
    const size_t least = in_front > 0 ? 1 : 2;
    if (tokens >= least) return;
    throw Error(
        fmt::format("{}: has {} token{}, but {} must be there: what is predicted{}", label, tokens,
                    tokens == 1 ? "" : "s", least, least > 1 ? ", and one before it" : ""),
        Fault::usage);
}

TextScore score_text(Session& session, std::span<const int32_t> text,
                     std::span<const int32_t> front, const Progress& progress) {
    check_predictable("the text", text.size(), front.size());
    if (session.room() < front.size() + 2)
        throw Error(fmt::format("the context has room for {} token{}, but a window takes {} at "
                                "least; raise memory.max_seq (--ctx)",
                                session.room(), session.room() == 1 ? "" : "s", front.size() + 2),
                    Fault::usage);
    const std::vector<TextWindow> windows =
        text_windows(text.size(), session.room() - front.size());
    const Checkpoint empty = session.checkpoint();
    const auto start = std::chrono::steady_clock::now();
    TextScore score{.tokens = text.size(), .windows = uint32_t(windows.size()), .passes = {}};
    double sum = 0;
    for (const TextWindow& w : windows) {
        session.restore(empty);
        const std::vector<double> nll =
            score_window(session, text, front, w, [&](size_t done, size_t) {
                if (progress) progress(std::min(w.begin + done, w.end), text.size());
            });
        check_finite(session, nll, w.end - nll.size());
        sum = std::accumulate(nll.begin(), nll.end(), sum);
        score.predicted += nll.size();
        score.passes.tokens += session.length();
    }
    score.mean_nll = sum / double(score.predicted);
    score.passes.bytes = session.bytes_moved();
    score.passes.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return score;
}

}  // namespace hf
