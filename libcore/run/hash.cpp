#include "libcore/run/hash.h"

#include <bit>

namespace hf {

void Fnv1a::add_word(uint32_t word) {
    for (int shift = 0; shift < 32; shift += 8) {
        value_ ^= (word >> shift) & 0xff;
        value_ *= 0x100000001b3;
    }
}

void Fnv1a::add(std::span<const int32_t> ids) {
    for (int32_t id : ids) add_word(uint32_t(id));
}

void Fnv1a::add(std::span<const float> values) {
    for (float value : values) add_word(std::bit_cast<uint32_t>(value));
}

uint64_t hash_answer(std::span<const int32_t> ids, std::span<const float> last_logits) {
    Fnv1a hash;
    hash.add(ids);
    hash.add(last_logits);
    return hash.value();
}

}  // namespace hf
