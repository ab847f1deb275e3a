// Merges of a vocabulary that has scores in their place (SentencePiece).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/text/vocab_builder.h"

namespace hf {

/// All the ways to make a token of two others, ranked by the token's score: the highest first,
/// equal ones by who stands further left in the text.
///
/// tokens  those that merging may use and make; texts may not come twice
/// scores  by id, finite
/// Errors  hf::Error that begins with `where` and the token: it has more than 256 bytes
/// Cost    tokens have up to 255 places to be cut at, and each half is hashed
/// Source  Kudo, Richardson 2018, SentencePiece; its bpe_model.cc gives the tie rule
std::vector<Merge> merges_from_scores(std::string_view where, std::span<const SpelledToken> tokens,
                                      std::span<const float> scores);

}  // namespace hf
