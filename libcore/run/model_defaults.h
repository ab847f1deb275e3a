// ModelDefaults: what a model's files say about ending an answer and about sampling.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "libcore/config/config.h"
#include "libcore/file/model_file.h"
#include "libcore/run/sampler.h"
#include "libcore/text/tokenizer.h"

namespace hf {

struct ModelDefaults {
    std::vector<int32_t> stop_ids;  // ascending
    SamplingConfig sampling;        // unset: the model says nothing
};

/// Stop ids: eos_token_id of config.json and of generation_config.json, the eos and eot ids among
/// the keys of a GGUF file, eos_token of tokenizer_config.json, and the tokens that end a turn in
/// any known vocabulary. All of them, because one alone may name the end of a text but not that of
/// a turn.
/// Sampling: temperature, top_k, top_p, min_p, repetition_penalty of generation_config.json;
/// "do_sample": false there is temperature 0.
///
/// tokenizer  null: ids come from the files alone
/// Errors     hf::Error naming file and key: not JSON, wrong type, a number out of its range
ModelDefaults read_model_defaults(const ModelFile& file, const Tokenizer* tokenizer);

/// What the cards of models with this chat template recommend. For models whose files say nothing
/// about sampling: GGUF files have no generation_config.json. Unset: no card that is known.
///
/// thinking  what was asked for; unset: the template's own default
/// Source    beside each row of the table
SamplingConfig card_sampling(std::string_view chat_template, std::optional<bool> thinking);

/// A person's value, else the model's, else the neutral one.
SamplingOptions sampling_options(const SamplingConfig& wanted, const SamplingConfig& model,
                                 uint64_t seed);

}  // namespace hf
