// Reads a tokenizer.json, the file of Hugging Face's tokenizers library, into a Vocab.
#pragma once

#include <string_view>

#include "libcore/text/vocab.h"

namespace hf {

/// Reads byte-level BPE: model BPE, pre-tokenizer Split + ByteLevel with a known pattern,
/// normaliser NFC or none, post-processor TemplateProcessing, ByteLevel or none.
///
/// label   names the source in errors
/// Errors  hf::Error: not JSON; what this program does not do, by its name; ids that are too large,
///         negative or given twice; merges of tokens that do not exist
/// Memory  grows with the text and, at 4 bytes each, with the largest id
Vocab read_tokenizer_json(std::string_view label, std::string_view json);

}  // namespace hf
