// The header of a safetensors file: which tensors there are, of which type and shape, and where.
//
//   u64            n, little-endian: bytes of the header
//   u8[n]          {"<name>": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]},
//   ...}
//                  a JSON object; "__metadata__" holds strings instead; spaces may follow
//   u8[...]        data; offsets count from here
//
// Source  https://github.com/huggingface/safetensors (README, "Format")
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/file/model_file.h"

namespace hf {

inline constexpr uint64_t kMostHeaderBytes = 100'000'000;  // the reference reader's limit

/// Lists the tensors of one safetensors file, by name. Reads the header and nothing else.
///
/// bytes    the whole file; the views point into it
/// path     for messages
/// file     becomes TensorView::file
/// Memory   at most 64 MB plus twice the header
/// Errors   hf::Error with path, tensor and numbers, unless
///          - the header is whole, not empty, at most kMostHeaderBytes, and a JSON object
///          - each entry is an object with a known dtype, a shape of at most four dimensions, rows
///            and columns below 2^31, and as many bytes as these need
///          - no name and no key of an entry comes twice, and there are at most kMostTensors
///          - tensors do not overlap and cover the data. Between two of them there may be padding:
///            fewer than 8 bytes that bring the second to a multiple of 8. None in front, none
///            behind.
///          Unknown keys of an entry are passed over.
std::vector<TensorView> read_safetensors(std::span<const std::byte> bytes, const std::string& path,
                                         uint32_t file);

}  // namespace hf
