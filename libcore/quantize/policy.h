// Policy: which format each tensor of a new file gets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libcore/codec/codec.h"
#include "libcore/quantize/source_model.h"

namespace hf {

/// A person's word on some tensors.
struct Keep {
    std::string pattern;  // a whole name, in which * stands for any characters
    const Codec* codec = nullptr;
};

struct Policy {
    const Codec* format = nullptr;  // of the large matrices
    std::vector<Keep> keep;         // the last one that matches counts
};

/// The format of that name, or of one of the short names that stand for formats (kShortNames).
/// Errors  hf::Error(usage) naming those that can be written
const Codec& format_by_name(std::string_view name);

/// "PATTERN=FORMAT".
/// Errors  hf::Error(usage)
Keep parse_keep(std::string_view text);

/// Names that stand for a format, as people call their files.
struct ShortName {
    std::string_view name, format;
};
std::span<const ShortName> short_names();

/// The format of a tensor.
///
///   kept by pattern        what the pattern says
///   vectors, convolution   f16
///   embedding and head     q8_0
///   fewer than 64 rows     q8_0 (gates of the delta net: small, and the state depends on them)
///   other matrices         the policy's format
///   rows not divisible     the first of hfq4g128, q8_0, f16 that has no fewer bits and divides
///   them
///
/// A policy's format of more bits than q8_0 takes its place; one of plain numbers (f32, f16, bf16)
/// is used for everything.
/// label   the model, for messages
/// Errors  hf::Error(usage): a pattern's format does not fit the tensor
const Codec& choose_format(const Policy& policy, const SourceTensor& tensor,
                           const std::string& label);

/// Every pattern stands for something.
/// Errors  hf::Error(usage) naming one that matches no tensor
void check_patterns(const Policy& policy, const SourceModel& model);

}  // namespace hf
