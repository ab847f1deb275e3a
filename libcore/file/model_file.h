// ModelFile: what is in a model on disk. Every container is read into this one struct: an index of
// tensors that point into mapped files, and the texts that describe the model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/base/shape.h"
#include "libcore/codec/codec.h"
#include "libcore/file/gguf_keys.h"
#include "libcore/file/mapped_file.h"

namespace hf {

inline constexpr size_t kMostTensors = 1 << 17;  // keeps a hostile header's cost bounded

/// One tensor in a mapped file: nothing is copied, the size was checked against shape and codec.
struct TensorView {
    std::string name;                // as ModelFile::naming has it
    std::string dtype;               // as the container spells it, for messages
    const Codec* codec = nullptr;    // null: a type that is recognised but has no row
    std::array<uint64_t, 4> dims{};  // slowest first, dims[0 .. n_dims)
    uint8_t n_dims = 0;
    Shape shape;  // rows: the product of all dims but the last; a tensor that is no matrix may be
                  //   one row instead, when its format's groups go across the rows
    std::span<const std::byte> bytes;  // any alignment; valid as long as the ModelFile
    uint32_t file = 0;                 // index into ModelFile::files
    uint64_t offset = 0;               // of bytes in that file, for messages
};

/// Whose names the tensors have.
enum class Naming : uint8_t { hugging_face, gguf };

/// Whose conventions the numbers follow: norm offsets, decay, order of heads, rope layout.
enum class Values : uint8_t { hugging_face, gguf };

/// A model on disk. Owns the mappings; moving it keeps all views valid.
struct ModelFile {
    std::string path;            // as the user gave it
    std::string_view container;  // "safetensors", "hfq", "gguf"
    Naming naming = Naming::hugging_face;
    Values values = Values::hugging_face;
    std::vector<MappedFile> files;
    std::vector<TensorView> tensors;  // sorted by name, no name twice
    std::string config;               // text of config.json
    std::string generation_config;    // text, or empty when there is none
    std::string tokenizer;            // text of tokenizer.json, or empty
    std::string tokenizer_config;     // text, or empty (a chat_template.jinja beside it is
    std::string chat_template;        //   preferred to the template inside it)
    GgufKeys gguf;                    // what a GGUF file has instead of these texts, or empty

    /// The tensor of that exact name, or null.
    const TensorView* find(std::string_view name) const;
};

/// Whether a path looks like a model: a folder with config.json, or a file that begins as one and
/// is no later shard. Reads no further, and what cannot be read is none.
bool looks_like_model(const std::string& path);

/// Opens a model: a folder with config.json and safetensors (folder.h), a GGUF file or the first of
/// its shards (gguf.h), or an HFQ file (hfq.h). What it is, its first bytes tell. Reads headers
/// only, so the cost is proportional to them and not to the weights.
/// Errors  hf::Error naming file, tensor or key, and both numbers: missing or cut files, headers
///         that are malformed or do not describe their bytes, tensors that overlap or are named
///         twice, shards that are missing or swapped.
ModelFile open_model_file(const std::string& path, const Log& log);

}  // namespace hf
