// The JSON in front of an HFQ file's tensors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libcore/base/log.h"
#include "libcore/file/model_file.h"

namespace hf {

/// What the reader of an HFQ file needs of its metadata, beside the texts of the model.
struct HfqMetadata {
    uint64_t bytes = 0;           // of the JSON object and the white space in front of it
    std::string architecture;     // "" when there is none
    bool made_from_gguf = false;  // "source" says so
    std::string_view gguf_meta;   // JSON object, a view; empty when there is none
};

/// Reads one JSON object, which ends at its last brace and need not be all of `text`, and fills the
/// texts of the model (see hfq.h).
/// where   begins the messages
/// Errors  hf::Error: not an object; no UTF-8; keys that come twice, are too long or too many; no
///         "config"; a known key of another type or with too many bytes; a "source" that is not
///         known
HfqMetadata read_hfq_metadata(std::string_view text, const std::string& where, ModelFile& model,
                              const Log& log);

/// Names that config.json gives the model: "model_type" and "architectures".
std::vector<std::string> names_in_config(const std::string& config, const std::string& where);

}  // namespace hf
