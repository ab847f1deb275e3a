// The tokenizer of a model on disk, whichever container it is in.
#pragma once

#include <memory>

#include "libcore/file/model_file.h"
#include "libcore/text/tokenizer.h"

namespace hf {

/// What GGUF's keys tokenizer.ggml.* say; views into them.
VocabData vocab_data(const GgufKeys& keys);

/// From the text of tokenizer.json, else from the keys of a GGUF file. Null without either, and
/// where the keys say that there is none.
/// Errors  hf::Error: see Tokenizer::from_json and from_vocab; keys of another type
std::unique_ptr<Tokenizer> open_tokenizer(const ModelFile& file);

}  // namespace hf
