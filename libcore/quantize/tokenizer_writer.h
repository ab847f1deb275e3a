// The vocabulary in the keys of a GGUF file as a tokenizer.json.
#pragma once

#include <string>

#include "libcore/file/gguf_keys.h"

namespace hf {

/// tokenizer.json that encodes and decodes as the keys say; empty when there is no vocabulary. Of
/// SentencePiece, merges of equal score are put in an order, as Hugging Face's converter does.
///
/// label   names the file in errors
/// Errors  hf::Error: what read_vocab_data() refuses
std::string tokenizer_json_of(const GgufKeys& keys, const std::string& label);

}  // namespace hf
