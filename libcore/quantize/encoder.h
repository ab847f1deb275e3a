// Encoder: how float32 weights become a format. A row of the table in encoders.cpp; formats without
// one are read and never written.
#pragma once

#include <span>
#include <string_view>

#include "libcore/codec/codec.h"

namespace hf {

/// Packs one row that is rotated and padded already.
///
/// row     (cols) float32, numbers up to 65504 in magnitude unless the format takes any
/// out     codec.row_bytes(cols), overwritten completely
/// scales  the row's part of a `scales` sidecar, or ignored
using EncodeRow = void (*)(const float* row, size_t cols, std::byte* out, std::byte* scales);

struct Encoder {
    const Codec* codec;
    EncodeRow encode_row;
    bool takes_any = false;  // infinities, NaNs, and what f16 scales and levels cannot reach
    /// For formats that hold only some values exactly: whether they hold those of a row, and which
    /// ones they are, in words. Null: all values.
    bool (*fits)(const float* row, size_t cols) = nullptr;
    std::string_view fitting = {};
};

/// All encoders, in the order of the codecs.
std::span<const Encoder> encoders();

/// The encoder of a format; null if it has none.
const Encoder* encoder_of(const Codec& codec);

/// Packs rows of a matrix: rotates them if the format asks for it, pads them, encodes them.
///
/// rows    (count, cols) float32, already multiplied by AWQ scales if there are any; cols is a
///         multiple of cols_unit()
/// where   file and tensor, for messages; first_row is the number of the first row there
/// out     count * codec.row_bytes(cols)
/// scales  the rows' part of a `scales` sidecar (one f16 per group), else ignored
/// Errors  hf::Error naming row and format: a value is not finite or, rotated, is beyond 65504; or
///         the format cannot hold it for another reason. f32 and bf16 take all
/// Source  docs/formats.md
void encode_rows(const Encoder& encoder, const float* rows, size_t count, size_t cols,
                 std::byte* out, std::byte* scales, std::string_view where, uint64_t first_row = 0);

}  // namespace hf
