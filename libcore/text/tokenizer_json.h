// Reads a tokenizer.json, the file of Hugging Face's tokenizers library, into a Vocab.
#pragma once

#include <string_view>

#include "libcore/text/vocab.h"

namespace hf {

/// Reads model BPE, of two kinds.
///
/// Byte-level     pre-tokenizer ByteLevel, alone, behind Digits or behind Split with a pattern of
///                pretokenize.h; normalizer NFC or none
/// SentencePiece  with byte_fallback; normalizer Prepend and Replace, or pre-tokenizer Metaspace
/// Both           post-processor TemplateProcessing, ByteLevel or none; added tokens, single_word
///                excepted
///
/// label   names the source in errors
/// Errors  hf::Error: not JSON; what this program does not do, by its name; ids that are too large,
///         negative or given twice; merges of tokens that do not exist
/// Memory  grows with the text and, at 4 bytes each, with the largest id
Vocab read_tokenizer_json(std::string_view label, std::string_view json);

}  // namespace hf
