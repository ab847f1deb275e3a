#include "libcore/file/tensor_checks.h"

#include <algorithm>

#include "libcore/base/checked.h"
#include "libcore/base/utf8.h"
#include "libcore/file/message.h"

namespace hf {
namespace {

constexpr uint64_t kMostElements = uint64_t(1) << 40;
constexpr uint64_t kSideLimit = uint64_t(1) << 31;  // of rows and of columns

}  // namespace

void check_tensor_name(std::string_view path, std::string_view place, std::string_view name) {
    if (name.empty()) fail_file(path, "{} has an empty name; damaged", place);
    for (size_t at = 0; at < name.size();) {
        const size_t length = utf8_length(name, at);
        if (length == 0)
            fail_file(path, "{} is called {}, which is not UTF-8 from byte {} on; damaged", place,
                      shown(name), at);
        if (static_cast<unsigned char>(name[at]) < 0x20 || name[at] == 0x7F)
            fail_file(path, "{} is called {}, with the control character {} as byte {}; damaged",
                      place, shown(name), int(name[at]), at);
        at += length;
    }
}

std::string dims_text(std::span<const uint64_t> dims) {
    return fmt::format("[{}]", fmt::join(dims.begin(), dims.end(), ", "));
}

Shape checked_shape(std::string_view path, std::string_view tensor,
                    std::span<const uint64_t> dims) {
    if (dims.empty() || dims.size() > 4)
        fail_file(path, "{} has {} dimensions; there must be 1 to 4; damaged", tensor, dims.size());
    Shape shape{1, 1};  // no more than kMostElements, at any time
    for (const uint64_t dim : dims) {
        if (dim == 0)
            fail_file(path, "{} has shape {} with a dimension of 0; damaged", tensor,
                      dims_text(dims));
        const auto elements = checked_mul(shape.rows * shape.cols, dim);
        if (!elements || *elements > kMostElements)
            fail_file(path, "{} has shape {}, which makes {} elements; at most {} are allowed",
                      tensor, dims_text(dims),
                      elements ? fmt::to_string(*elements) : "more than 2^64", kMostElements);
        shape = {shape.rows * shape.cols, dim};
    }
    if (shape.rows >= kSideLimit || shape.cols >= kSideLimit)
        fail_file(path, "{} has shape {}, {} rows and {} columns; each must be below {}", tensor,
                  dims_text(dims), shape.rows, shape.cols, kSideLimit);
    return shape;
}

void sort_by_name(std::string_view path, std::vector<TensorView>& tensors) {
    std::ranges::sort(tensors, {}, &TensorView::name);
    const auto twice = std::ranges::adjacent_find(tensors, {}, &TensorView::name);
    if (twice != tensors.end())
        fail_file(path, "tensor {} is there twice, at bytes {} and {}; damaged", shown(twice->name),
                  twice->offset, std::next(twice)->offset);
}

}  // namespace hf
