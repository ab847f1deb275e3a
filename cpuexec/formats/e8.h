// Points of the E8 lattice as codewords of 8 n bits, n = 4, 3, 2: eight weights each.
//
//   bits [n i, n i + n)   e[i], i = 0 .. 6
//   bits [7n, 8n - 1)     e[7] / 2: the sum of all e is even, which gives the lowest bit of e[7]
//   bit  8n - 1           half: all coordinates are 1/2 larger
//   coordinate i          e[i] - bias + half / 2
#pragma once

#include <cstddef>
#include <cstdint>

namespace hf::cpu {

/// The bias of e, and what a coordinate is worth in units of the scale.
template <unsigned n>
struct E8;
template <>
struct E8<4> {
    static constexpr int bias = 7;
    static constexpr float step = 0.88f;
};
template <>
struct E8<3> {
    static constexpr int bias = 4;
    static constexpr float step = 1.8f;
};
template <>
struct E8<2> {
    static constexpr int bias = 2;
    static constexpr float step = 3.8f;
};

/// A one in the lowest bit of e[0] .. e[6].
template <unsigned n>
constexpr uint32_t e8_lowest_bits() {
    uint32_t bits = 0;
    for (unsigned i = 0; i < 7; ++i) bits |= 1u << n * i;
    return bits;
}

/// Writes eight codes: a coordinate is half of what its code is above 2 * bias.
template <unsigned n>
__attribute__((always_inline)) inline void e8_decode(uint32_t word, uint8_t* codes) {
    const uint32_t half = word >> (8 * n - 1) & 1;
    const uint32_t odd = uint32_t(__builtin_parity(word & e8_lowest_bits<n>()));
    const uint32_t last = 2 * (word >> 7 * n & ((1u << (n - 1)) - 1)) + odd;
    for (unsigned i = 0; i < 8; ++i) {
        const uint32_t e = i < 7 ? word >> n * i & ((1u << n) - 1) : last;
        codes[i] = uint8_t(2 * e + half);
    }
}

}  // namespace hf::cpu
