// ModelTexts: everything of a model that is no tensor, as an HFQ file carries it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/arch/arch.h"
#include "libcore/file/model_file.h"
#include "libcore/load/tensor_plan.h"

namespace hf {

/// JSON, each as Hugging Face's file of that name; empty where there is none.
struct ModelTexts {
    std::string label;         // of the source, for messages
    std::string architecture;  // "model_type"
    std::string config, generation_config, tokenizer, tokenizer_config;
};

/// The texts of a model. Those of folders and HFQ files stay as they are, except that a chat
/// template from a file of its own moves into tokenizer_config. Those of a GGUF file are made from
/// its keys and from the divisors of its rope.
/// Errors  hf::Error: rope divisors that are not those of llama3 scaling; see tokenizer_json_of
ModelTexts texts_of(const ModelFile& file, const Architecture& arch, const ModelConfig& config,
                    const std::vector<PlannedTensor>& plan);

/// Those of the texts that are about tokens: tokenizer and tokenizer_config.
ModelTexts token_texts_of(const ModelFile& file);

/// The JSON object in front of an HFQ file's tensors.
/// Errors  hf::Error naming the text that is not a JSON object
std::string hfq_metadata(const ModelTexts& texts);

/// config.json of a model; the opposite of what architectures read.
std::string config_json(const Architecture& arch, const ModelConfig& config,
                        std::span<const int32_t> end_ids);

/// A JSON string, with its quotes. text is UTF-8.
std::string json_string(std::string_view text);

}  // namespace hf
