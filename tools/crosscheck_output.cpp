#include "tools/crosscheck_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/device_facts.h"

namespace hf {

std::string score_line(const ScoreFacts& facts) {
    const TextScore& score = facts.score;
    return fmt::format(
        "perplexity {:.4f} (mean negative log-likelihood {:.5f} nats over {} of {} tokens, {} "
        "window{} of at most {})\n",
        score.perplexity(), score.mean_nll, score.predicted, score.tokens, score.windows,
        score.windows == 1 ? "" : "s", facts.context);
}

std::string passes_line(const ScoreFacts& facts) {
    const Phase& p = facts.score.passes;
    return fmt::format(
        "{} tokens in {:.1f} s ({:.1f} tok/s, {:.1f} MiB/token, {:.2f} GB/s); {}; "
        "cache {}",
        p.tokens, p.seconds, p.tok_per_s(), p.bytes_per_token() / (1 << 20), p.gb_per_s(),
        device_text(facts.device, facts.products), facts.kv_cache);
}

std::string score_json(const ScoreFacts& f) {
    const TextScore& s = f.score;
    return json_line({{"version", HF_VERSION},
                      {"check", "perplexity"},
                      {"model", f.model},
                      {"architecture", f.architecture},
                      {"text", f.text},
                      {"text_hash", fmt::format("{:016x}", f.text_hash)},
                      {"device", device_json(f.device, f.products)},
                      {"kv_cache", f.kv_cache},
                      {"context", f.context},
                      {"windows", s.windows},
                      {"tokens", s.tokens},
                      {"predicted", s.predicted},
                      {"mean_nll", s.mean_nll},
                      {"perplexity", s.perplexity()},
                      {"passes",
                       {{"tokens", s.passes.tokens},
                        {"seconds", s.passes.seconds},
                        {"tok_per_s", s.passes.tok_per_s()},
                        {"bytes_per_token", s.passes.bytes_per_token()},
                        {"gb_per_s", s.passes.gb_per_s()}}}});
}

std::string weights_text(const WeightFacts& facts) {
    std::string text;
    for (const FormatError& e : facts.errors)
        text += fmt::format(
            "{:14} relative error {:.4g} over {} weights in {} tensor{}; at most "
            "{:.4g}, in {}\n",
            e.codec->name, e.relative_error(), e.weights, e.tensors, e.tensors == 1 ? "" : "s",
            e.worst_error, e.worst);
    return text;
}

std::string weights_json(const WeightFacts& facts) {
    nlohmann::ordered_json formats = nlohmann::ordered_json::array();
    for (const FormatError& e : facts.errors)
        formats.push_back({{"name", e.codec->name},
                           {"tensors", e.tensors},
                           {"weights", e.weights},
                           {"relative_error", e.relative_error()},
                           {"worst_tensor", e.worst},
                           {"worst_error", e.worst_error}});
    return json_line({{"version", HF_VERSION},
                      {"check", "weights"},
                      {"model", facts.model},
                      {"original", facts.original},
                      {"formats", formats}});
}

}  // namespace hf
