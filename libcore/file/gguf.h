// The header of a GGUF file: typed keys, and which tensors there are, of which type, and where.
//
//   "GGUF"         u32 version (2 or 3)   u64 tensors   u64 keys
//   keys           string name, u32 type, value; a list: u32 type of elements, u64 count, elements
//   tensors        string name, u32 dims, u64[dims] fastest first, u32 type, u64 offset
//   zero bytes     up to a multiple of the alignment: key "general.alignment", or else 32
//   data           offsets count from here
//
// A string is a u64 length and so many bytes. All numbers are little-endian, nothing in front of
// the data is aligned.
//
// Source  https://github.com/ggml-org/ggml (its document about GGUF, and gguf.cpp)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/file/model_file.h"

namespace hf {

inline constexpr uint64_t kMostGgufKeys = 1 << 16;  // keeps a hostile header's cost bounded

/// What one GGUF file says. Everything points into it.
struct GgufContents {
    std::vector<GgufKey> keys;        // sorted by name
    std::vector<TensorView> tensors;  // sorted by name; dims slowest first, as everywhere
};

/// Reads the header of one GGUF file and nothing else. It may be a shard, or hold no tensors.
///
/// bytes    the whole file
/// path     for messages
/// file     becomes TensorView::file
/// Memory   at most 64 MB plus twice the header
/// Errors   hf::Error with path, tensor or key, position, and numbers, unless
///          - magic and version are known, and counts and lengths stay within the file
///          - names of keys have 1 to 65535 bytes, types are known, lists hold no lists, booleans
///            are 0 or 1, and no key comes twice; the alignment is a u32 and a power of two
///          - tokens, scores and types of the vocabulary are equally many, and the ids of special
///            tokens are below that
///          - names of tensors have 1 to 64 bytes, and no tensor comes twice
///          - tensors have 1 to 4 dimensions of at least 1, a type of known size, whole blocks,
///            aligned offsets, and lie inside the file without overlaps
GgufContents read_gguf(std::span<const std::byte> bytes, const std::string& path, uint32_t file);

/// Whether a name says that a file is a shard, but not the first one.
bool is_later_shard(const std::string& path);

/// Opens a model of one GGUF file, or of the shards NAME-00001-of-0000N.gguf, of which the first is
/// given. The chat template of the keys becomes ModelFile::chat_template; the other texts are
/// empty. Errors  hf::Error: what read_gguf() refuses; a shard that is missing, in another's place,
/// or of
///         another set; tensors that are not as many as the first shard says, or come twice
ModelFile open_gguf(const std::string& path, const Log& log);

}  // namespace hf
