#include "libcore/run/model_defaults.h"

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "libcore/arch/arch.h"
#include "libcore/arch/config_fields.h"

namespace hf {
namespace {

constexpr std::string_view kEndTokens[] = {
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>",
};

/// Reads one of the model's files, if it is there.
void read_fields(const ModelFile& file, const std::string& name, const std::string& text,
                 const std::function<void(const ConfigFields&)>& read) {
    if (!text.empty()) read(ConfigFields(file.path + "/" + name, text));
}

SamplingConfig read_sampling(const ConfigFields& f) {
    const auto number = [&](std::string_view key, double least, double most) {
        return f.has(key) ? std::optional(float(f.number(key, least, most))) : std::nullopt;
    };
    SamplingConfig s;
    s.temperature = f.boolean("do_sample", true) ? number("temperature", 0, 1e6) : 0.0f;
    if (f.has("top_k")) s.top_k = f.uint("top_k", 0, INT32_MAX);
    s.top_p = number("top_p", 1e-6, 1);
    s.min_p = number("min_p", 0, 1);
    s.repetition_penalty = number("repetition_penalty", 1e-3, 1e3);
    return s;
}

}  // namespace

ModelDefaults read_model_defaults(const ModelFile& file, const Tokenizer* tokenizer) {
    ModelDefaults defaults;
    std::set<int32_t> stop;
    const auto add_token = [&](std::string_view token) {
        if (const auto id = tokenizer->id_of(token)) stop.insert(*id);
    };
    for (int32_t id : end_ids(file)) stop.insert(id);
    read_fields(file, "generation_config.json", file.generation_config, [&](const ConfigFields& f) {
        for (int32_t id : f.ids("eos_token_id")) stop.insert(id);
        defaults.sampling = read_sampling(f);
    });
    if (tokenizer) {
        read_fields(file, "tokenizer_config.json", file.tokenizer_config,
                    [&](const ConfigFields& f) {
                        const bool is_object = f.has("eos_token.content");
                        add_token(f.text(is_object ? "eos_token.content" : "eos_token", ""));
                    });
        for (std::string_view token : kEndTokens) add_token(token);
    }
    defaults.stop_ids.assign(stop.begin(), stop.end());
    return defaults;
}

namespace {

struct Card {
    std::string_view chat_template;
    bool thinks;  // when nobody says whether to
    SamplingConfig thinking, plain;
};

constexpr SamplingConfig advice(float temperature, float top_p, std::optional<uint32_t> top_k = {},
                                std::optional<float> presence_penalty = {}) {
    SamplingConfig s;
    s.temperature = temperature;
    s.top_p = top_p;
    s.top_k = top_k;
    s.presence_penalty = presence_penalty;
    return s;
}

/// As their makers publish them, for general text; what is neutral there (min_p 0) is left out.
///
/// qwen3.5        "Best Practices" of huggingface.co/Qwen/Qwen3.5-4B; the larger ones say the same
///
/// qwen3.5-small  the same of Qwen/Qwen3.5-0.8B and -2B, text tasks
///
/// qwen3          the same of Qwen/Qwen3-8B
///
/// llama3         generation_config.json of huggingface.co/meta-llama/Meta-Llama-3-8B-Instruct, and
///                example_chat_completion.py of github.com/meta-llama/llama3
///
/// llama3.1       generation_config.json of huggingface.co/meta-llama/Llama-3.1-8B-Instruct
constexpr Card kCards[] = {
    {"qwen3.5", true, advice(1.0f, 0.95f, 20, 1.5f), advice(0.7f, 0.8f, 20, 1.5f)},
    {"qwen3.5-small", false, advice(1.0f, 0.95f, 20, 1.5f), advice(1.0f, 1.0f, 20, 2.0f)},
    {"qwen3", true, advice(0.6f, 0.95f, 20), advice(0.7f, 0.8f, 20)},
    {"llama3", false, {}, advice(0.6f, 0.9f)},
    {"llama3.1", false, {}, advice(0.6f, 0.9f)},
};

}  // namespace

SamplingConfig card_sampling(std::string_view chat_template, std::optional<bool> thinking) {
    for (const Card& card : kCards)
        if (card.chat_template == chat_template)
            return thinking.value_or(card.thinks) && card.thinking.temperature ? card.thinking
                                                                               : card.plain;
    return {};
}

SamplingOptions sampling_options(const SamplingConfig& wanted, const SamplingConfig& model,
                                 uint64_t seed) {
    SamplingOptions s;
    s.seed = seed;
    const auto choose = [&](auto field, auto& value) {
        value = (wanted.*field).value_or((model.*field).value_or(value));
    };
    choose(&SamplingConfig::temperature, s.temperature);
    choose(&SamplingConfig::top_k, s.top_k);
    choose(&SamplingConfig::top_p, s.top_p);
    choose(&SamplingConfig::min_p, s.min_p);
    choose(&SamplingConfig::repetition_penalty, s.repetition_penalty);
    choose(&SamplingConfig::presence_penalty, s.presence_penalty);
    choose(&SamplingConfig::frequency_penalty, s.frequency_penalty);
    return s;
}

}  // namespace hf
