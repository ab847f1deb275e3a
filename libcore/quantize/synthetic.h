// Models of real shapes with random weights, for measuring without the real weights.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "libcore/quantize/source_model.h"

namespace hf {

/// Sizes there are: "qwen3.5-0.8b" and so on.
std::vector<std::string_view> synthetic_sizes();

/// A model of that size. The same seed gives the same weights, row by row, whoever asks in which
/// order. Weights are scaled so that activations stay around 1 in every layer: logits are finite,
/// and as spread out as those of a model that has learned a little.
///
/// texts_from  whose tokenizer it gets; the embedding has more rows, which the sampler leaves out
/// Errors      hf::Error(usage) naming the sizes; HFQ cannot carry the tokenizer
SourceModel synthetic_model(std::string_view size, uint64_t seed, const ModelFile& texts_from);

}  // namespace hf
