// What a tokenizer.json does to text before and after merging.
#pragma once

#include "libcore/text/json_node.h"

namespace hf {

/// Reads normalizer, pre_tokenizer and decoder, which must fit together, into vocab. Its split
/// stays null when the text is not cut. Returns how the tokens of the model are spelled: byte_level
/// or spaced. Errors  hf::Error naming the step that is not done here
Spelling read_steps(const JsonNode& root, Vocab& vocab);

/// Reads what is put around a text; the tokens must be stored.
void read_post_processor(const JsonNode& processor, Vocab& vocab);

}  // namespace hf
