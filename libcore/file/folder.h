// A folder as Hugging Face publishes models: config.json, safetensors, and texts beside them.
#pragma once

#include <string>

#include "libcore/base/log.h"
#include "libcore/file/model_file.h"

namespace hf {

/// Opens the model in a folder. The weights are not read.
///
/// Weights  model.safetensors, or else the shards that model.safetensors.index.json names. Other
///          safetensors are not part of the model.
/// Texts    config.json must be there; generation_config.json, tokenizer.json,
///          tokenizer_config.json and chat_template.jinja may be. What they mean is not checked.
///          Chat template: the .jinja file, or else "chat_template" of tokenizer_config.json, a
///          string or a list of {name, template}, of which "default" is taken.
/// Errors   hf::Error: what read_safetensors() refuses; a text beyond its limit; no config.json; no
///          weights; an index that is not {"weight_map": {tensor: shard, ...}}, whose shards are
///          not all plain names of files in the folder, or that does not list exactly the tensors
///          of each shard
ModelFile open_folder(const std::string& path, const Log& log);

/// The texts of such a folder, and no tensors: weights need not be there, nor config.json beside a
/// tokenizer.json.
/// Errors   hf::Error: neither config.json nor tokenizer.json; a text beyond its limit
ModelFile open_folder_texts(const std::string& path, const Log& log);

}  // namespace hf
