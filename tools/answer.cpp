#include "tools/answer.h"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libcore/run/hash.h"
#include "tools/device_facts.h"
#include "tools/profile_output.h"
#include "tools/terminal.h"

namespace hf {
namespace {

using Json = nlohmann::ordered_json;

std::string hex(uint64_t hash) {
    return fmt::format("{:016x}", hash);
}

/// The double that prints as the float does: 0.7, not 0.699999988079071.
double as_written(float value) {
    const std::string text = fmt::format("{}", value);
    double same = 0;
    std::from_chars(text.data(), text.data() + text.size(), same);
    return same;
}

/// The seed is null when nothing is drawn.
Json sampling_json(const SamplingOptions& s) {
    return {{"temperature", as_written(s.temperature)},
            {"seed", s.is_greedy() ? Json() : Json(s.seed)},
            {"top_k", s.top_k},
            {"top_p", as_written(s.top_p)},
            {"min_p", as_written(s.min_p)},
            {"repetition_penalty", as_written(s.repetition_penalty)},
            {"presence_penalty", as_written(s.presence_penalty)},
            {"frequency_penalty", as_written(s.frequency_penalty)}};
}

Json phase_json(const Phase& p) {
    return {{"tokens", p.tokens},
            {"seconds", p.seconds},
            {"tok_per_s", p.tok_per_s()},
            {"bytes_per_token", p.bytes_per_token()},
            {"gb_per_s", p.gb_per_s()}};
}

}  // namespace

void AnswerWriter::start(const RunFacts& f) {
    if (form_ == AnswerForm::text && !f.answer_begins.empty()) output_.write(f.answer_begins);
    if (form_ != AnswerForm::json) return;
    output_.write(
        json_line({{"type", "start"},
                   {"version", HF_VERSION},
                   {"model", f.model},
                   {"architecture", f.architecture},
                   {"container", f.container},
                   {"device", device_json(f.device, f.products)},
                   {"kv_cache", f.kv_cache},
                   {"max_seq", f.max_seq},
                   {"chat_template", f.chat_template.empty() ? Json() : Json(f.chat_template)},
                   {"answer_begins", f.answer_begins},
                   {"sampling", sampling_json(f.sampling)},
                   {"prompt_tokens", f.prompt_tokens},
                   {"prompt_hash", hex(f.prompt_hash)}}));
}

void AnswerWriter::token(const GeneratedToken& token) {
    if (form_ == AnswerForm::text) {
        output_.write(is_shown_ ? terminal_text(token.text) : std::string(token.text));
        if (!token.text.empty()) ends_in_newline_ = token.text.back() == '\n';
    } else if (form_ == AnswerForm::ids) {
        output_.write(fmt::format("{}\n", token.id));
    } else {
        Json object = {{"type", "token"}, {"text", token.text}};
        if (ids_in_json_) object["id"] = token.id;
        output_.write(json_line(object));
    }
}

void AnswerWriter::finish(const RunFacts& facts, const Generation& g, std::optional<uint64_t> hash,
                          const StepProfile* profile) {
    if (form_ == AnswerForm::text && !ends_in_newline_) output_.write("\n");
    if (form_ != AnswerForm::json) return;
    Json object = {{"type", "summary"},
                   {"finish", finish_name(g.finish)},
                   {"tokens_in", facts.prompt_tokens},
                   {"tokens_out", g.ids.size()},
                   {"prompt", phase_json(g.prompt)},
                   {"decode", phase_json(g.decode)},
                   {"device", device_json(facts.device, facts.products)},
                   {"sampling", sampling_json(facts.sampling)}};
    if (hash) object["hash"] = hex(*hash);
    if (profile) object["profile"] = profile_json(*profile);
    output_.write(json_line(object));
}

std::string summary_line(const RunFacts& facts, const Generation& g) {
    std::string text = fmt::format("{} tokens in ({:.1f} tok/s), {} out", facts.prompt_tokens,
                                   g.prompt.tok_per_s(), g.ids.size());
    if (g.decode.tokens > 0)
        text += fmt::format(" ({:.1f} tok/s, {:.1f} MiB/token, {:.2f} GB/s)", g.decode.tok_per_s(),
                            g.decode.bytes_per_token() / (1 << 20), g.decode.gb_per_s());
    text += "; " + device_text(facts.device, facts.products);
    if (!facts.sampling.is_greedy()) text += fmt::format("; seed {}", facts.sampling.seed);
    return text + fmt::format("; {}", finish_name(g.finish));
}

}  // namespace hf
