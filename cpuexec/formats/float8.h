// The two 8-bit scales of the 4-bit float formats. Widening is exact.
//
//   UE8M0   eeeeeeee   2^(e - 127); 255 is no valid scale and gives infinity, so that it shows
//   E4M3    -eeeemmm   exponent bias 7, subnormals count, bit 7 is ignored; what 0x7f is, is up to
//                      the format: 448 in HFQ, 0 in GGUF (which takes 0xff for 480)
#pragma once

#include <bit>
#include <cstdint>

namespace hf::cpu {

inline float ue8m0_to_f32(uint8_t code) {
    constexpr uint32_t kSmallest = 0x00400000;  // 2^-127, subnormal
    return std::bit_cast<float>(code ? uint32_t(code) << 23 : kSmallest);
}

inline float e4m3_magnitude(uint8_t code) {
    return std::bit_cast<float>(uint32_t(code & 0x7f) << 20) * 0x1p120f;  // 2^(127 - 7)
}
inline float e4m3_hfq(uint8_t code) {
    return (code & 0x7f) == 0x7f ? 448 : e4m3_magnitude(code);
}
inline float e4m3_gguf(uint8_t code) {
    return code == 0x7f ? 0 : e4m3_magnitude(code);
}

}  // namespace hf::cpu
