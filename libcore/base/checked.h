// Arithmetic on sizes that come from files: a product or a sum that does not fit says so.
#pragma once

#include <cstdint>
#include <optional>

namespace hf {

inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
    return product;
}

inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
    return sum;
}

}  // namespace hf
