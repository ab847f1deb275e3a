// What hf-crosscheck prints. docs/hf-crosscheck.md describes the objects.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libcore/device/device.h"
#include "libcore/run/compare_weights.h"
#include "libcore/run/perplexity.h"
#include "libcore/run/product_kinds.h"

namespace hf {

/// A score and what stands beside it.
struct ScoreFacts {
    std::string model, architecture;
    std::string text;        // path
    uint64_t text_hash = 0;  // of its ids
    DeviceInfo device;
    std::vector<ProductKind> products;
    std::string kv_cache;
    uint32_t context = 0;  // tokens of a window
    TextScore score;
};

/// One line for people: perplexity, and over what.
std::string score_line(const ScoreFacts& facts);
/// One line about speed and device.
std::string passes_line(const ScoreFacts& facts);
std::string score_json(const ScoreFacts& facts);

struct WeightFacts {
    std::string model, original;
    std::span<const FormatError> errors;
};

/// One line per format.
std::string weights_text(const WeightFacts& facts);
std::string weights_json(const WeightFacts& facts);

}  // namespace hf
