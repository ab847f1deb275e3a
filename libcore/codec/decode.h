// Weights in their own basis: decoded, and rotated back where their format rotates them. For those
// who need the weights and not a product; a dot takes rotated activations instead.
#pragma once

#include <vector>

#include "libcore/codec/codec.h"

namespace hf {

/// One row of a matrix.
///
/// W       of view_of()
/// out     (cols of the matrix), overwritten
void decode_original(const Codec& codec, const cpu::WeightView& W, size_t row,
                     std::span<float> out);

/// Columns of n weights that are no matrix (a vector, a convolution): one run of groups, the last
/// one filled up.
constexpr uint64_t flat_cols(const Codec& codec, uint64_t n) {
    const uint64_t block = rotation_block(codec.rotation);
    const uint64_t unit = codec.group > block ? codec.group : block;
    return (n + unit - 1) / unit * unit;
}

/// Their values.
///
/// bytes   tensor_bytes(codec, {1, flat_cols(codec, n)}) bytes; a codec with levels in another
///         tensor is not for such weights
std::vector<float> decode_flat(const Codec& codec, const std::byte* bytes, uint64_t n);

}  // namespace hf
