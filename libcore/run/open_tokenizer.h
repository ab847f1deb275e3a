// The tokenizer of a model on disk, whichever container it is in, with or without its weights.
#pragma once

#include <memory>
#include <string>

#include "libcore/file/model_file.h"
#include "libcore/text/tokenizer.h"

namespace hf {

/// What GGUF's keys tokenizer.ggml.* say; views into them.
VocabData vocab_data(const GgufKeys& keys);

/// From the text of tokenizer.json, else from the keys of a GGUF file. Null without either, and
/// where the keys say that there is none.
/// Errors  hf::Error: see Tokenizer::from_json and from_vocab; keys of another type
std::unique_ptr<Tokenizer> open_tokenizer(const ModelFile& file);

/// The texts of a model, for work that needs no weights. Besides what open_model_file() takes: a
/// folder without weights that has a tokenizer.json, or a tokenizer.json by itself.
/// Errors  hf::Error: see open_model_file, open_folder_texts
ModelFile open_model_texts(const std::string& path, const Log& log);

}  // namespace hf
