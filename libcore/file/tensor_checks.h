// What the binary containers check alike in the tensors that they list.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "libcore/base/shape.h"
#include "libcore/file/model_file.h"

namespace hf {

/// Refuses names that are empty, no UTF-8, or hold control characters.
/// place   where the name comes from, for messages: "the tensor at byte 92"
/// Errors  hf::Error
void check_tensor_name(std::string_view path, std::string_view place, std::string_view name);

/// Rows and columns of a tensor: rows are the product of all dims but the last.
/// dims    slowest first
/// tensor  for messages: "tensor 'a' at byte 92"
/// Errors  hf::Error unless there are 1 to 4 dims of at least 1, which make at most 2^40 elements,
///         and rows and columns are below 2^31
Shape checked_shape(std::string_view path, std::string_view tensor, std::span<const uint64_t> dims);

/// "[2, 3]"
std::string dims_text(std::span<const uint64_t> dims);

/// Sorts by name. Errors  hf::Error when a name is there twice
void sort_by_name(std::string_view path, std::vector<TensorView>& tensors);

}  // namespace hf
