// The header of an HFQ file, version 1: JSON metadata, and which tensors there are, of which
// format.
//
//   "HFQM"         u32 version (1)   u32 arch_id   u32 tensors   u64 metadata offset   u64 data
//   offset metadata       one JSON object, whose length is stored nowhere; the index follows its
//   last brace index          u32 tensors; for each: u16 bytes of the name, name, u8 format, u8
//   dims,
//                  u32[dims] slowest first, u32 group size (not read), u64 bytes of the payload
//   zero bytes     up to the data offset
//   payloads       back to back in the order of the index, at any address
//
// Behind the last payload another container may follow, with a trailer of "HFBNDMTP" and the u64
// offset of that container at the end of the file. Numbers are little-endian.
//
// Source  https://github.com/Kaden-Schutt/hipfire (crates/hipfire-quantize/src/hfq.rs, the writer)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/file/model_file.h"

namespace hf {

/// Reads the header of an HFQ file into a model without files: everything but `files` is filled.
///
/// bytes    the whole file; the views point into it
/// path     becomes ModelFile::path
/// Texts    as a folder has them: "config", "generation_config", "tokenizer" (JSON inside a JSON
///          string), "tokenizer_config" and its chat template. Unknown keys are passed over.
/// GGUF     a file with "source": "gguf" was made from a GGUF file. It keeps that file's values,
/// and
///          its keys as JSON under "gguf_meta", but most of its tensors have Hugging Face's names.
///          It is read as the GGUF file that it was: names and order of dims are turned back, and
///          ModelFile::gguf holds the keys.
/// Memory   at most 64 MB plus twice the header
/// Errors   hf::Error with path, tensor or key, position, and numbers, unless
///          - magic and version are known, offsets are in order and inside the file, and as many
///            tensors are claimed as the index has room for and holds
///          - the metadata is a JSON object without repeated keys, and "config" is an object
///          - arch_id and the model's name agree where the name is one of Qwen3.5's
///          - names are UTF-8 without control characters, and no two name the same tensor once
///            "model." or "model.language_model." is taken off
///          - a tensor has 1 to 4 dimensions of at least 1, and exactly the bytes that its format
///            and shape need. A format that is known by name only is kept without a codec.
///          - sidecars (see hfq_sidecars.h) fit the weights that they belong to
///          - a trailer points behind the payloads, at a container
ModelFile read_hfq(std::span<const std::byte> bytes, const std::string& path, const Log& log);

/// Maps the file and reads it.
ModelFile open_hfq(const std::string& path, const Log& log);

}  // namespace hf
