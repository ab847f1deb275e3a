// Levels that belong to a format, not to a file.
#pragma once

#include "cpuexec/formats/codes.h"

namespace hf::cpu {

/// *gl: levels for a normal distribution, of 2 or 3 bits.
template <unsigned width>
inline constexpr Levels kGlLevels = {};
template <>
inline constexpr Levels kGlLevels<2> = {-1.5104f, -0.4528f, 0.4528f, 1.5104f};
template <>
inline constexpr Levels kGlLevels<3> = {-2.1520f, -1.3439f, -0.7560f, -0.2451f,
                                        0.2451f,  0.7560f,  1.3439f,  2.1520f};

/// E2M1, the 4-bit float: by nibble, bit 3 is the sign.
inline constexpr Levels kE2M1 = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                 -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

/// The same in GGUF, which has no negative zero.
inline constexpr Levels kE2M1Gguf = {0.0f, 0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                     0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

/// iq4_*: levels denser around zero.
inline constexpr Levels kIq4Levels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace hf::cpu
