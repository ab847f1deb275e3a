// Hash of an answer: one number that differs when a token or the last bit of a logit differs.
#pragma once

#include <cstdint>
#include <span>

namespace hf {

/// FNV-1a, 64 bits, over the little-endian bytes of what is added, in order.
/// Source  Fowler, Noll, Vo: The FNV Non-Cryptographic Hash Algorithm (draft-eastlake-fnv)
class Fnv1a {
  public:
    void add(std::span<const int32_t> ids);
    void add(std::span<const float> values);  // their bits: 0 and -0 differ
    uint64_t value() const { return value_; }

  private:
    uint64_t value_ = 0xcbf29ce484222325;
    void add_word(uint32_t word);
};

/// What the tools print as "hash": the generated ids, then the logits that the last of them was
/// chosen from (after a prompt alone: the logits behind it).
uint64_t hash_answer(std::span<const int32_t> ids, std::span<const float> last_logits);

}  // namespace hf
