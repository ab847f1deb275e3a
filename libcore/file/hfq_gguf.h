// HFQ files made from GGUF files: how to read them as the GGUF files that they were.
#pragma once

#include <string>
#include <string_view>

#include "libcore/file/gguf_keys.h"

namespace hf {

/// The keys of the GGUF file, which the converter writes as one JSON object of keys and values.
/// Whole numbers become i64, others f64.
///
/// label   begins the messages of the keys: the file
/// Cost    4 bytes per byte of JSON at most, owned by the result
/// Errors  hf::Error: not an object of numbers, strings, booleans and lists of one of these kinds;
///         too many bytes or keys; keys that come twice. A null counts as absent.
GgufKeys gguf_keys_from_json(std::string_view json, const std::string& label);

/// The name that a tensor had in the GGUF file. The converter renames what llama has, puts all
/// other weights of a layer under "model.layers.", and keeps the rest (biases, "blk.0.ssm_a").
/// Source  https://github.com/Kaden-Schutt/hipfire (gguf_to_safetensors_name)
std::string gguf_name_of(std::string_view name);

}  // namespace hf
