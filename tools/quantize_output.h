// How hf-quantize shows what it wrote, to people and to programs.
#pragma once

#include <string>

#include "libcore/quantize/quantize_model.h"

namespace hf {

/// What is printed beside the numbers.
struct QuantizeFacts {
    std::string source;  // a path, or the size and seed of made-up weights
    std::string output;
    std::string_view format;  // that was asked for
    std::string processor = {};
    unsigned threads = 0;
    size_t calibration_tokens = 0;  // 0: no AWQ scales
};

/// One line with the totals, then one line per format.
std::string quantize_text(const QuantizeFacts& facts, const QuantizeReport& report);

/// One line, described in docs/hf-quantize.md.
std::string quantize_json(const QuantizeFacts& facts, const QuantizeReport& report);

}  // namespace hf
