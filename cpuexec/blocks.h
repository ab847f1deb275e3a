// Packed weights as they lie in files. CPU and GPU code read the same structs; blocks follow each
// other without padding and may start at any address, so every struct has alignment 1.
#pragma once

#include <cstdint>

namespace hf {

/// Q8_0: 32 weights in 34 bytes, w[i] = f16(scale) * q[i]. Same bytes in HFQ (3) and GGUF (8).
/// -128 is a legal code.
///   byte 0 1     2 ........ 33
///        scale   q[0] .. q[31]
struct __attribute__((packed)) Q8_0Block {
    uint16_t scale;  // IEEE binary16
    int8_t q[32];
};
static_assert(sizeof(Q8_0Block) == 34 && alignof(Q8_0Block) == 1);

}  // namespace hf
