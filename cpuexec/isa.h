// Instruction levels: what this CPU and its system allow, and what they are called.
#pragma once

#include <optional>
#include <string_view>

#include "cpuexec/codec_ops.h"

namespace hf::cpu {

/// "scalar", "avx2", "avxvnni", "avx512vnni", "amx".
std::string_view name(Level level);

/// "f32", "i16", "int8".
std::string_view name(Activations activations);

/// The level of that name, or nothing.
std::optional<Level> parse_level(std::string_view name);

/// Whether the CPU has the instructions and the system saves their registers.
///
/// avx2        AVX2, FMA, F16C
/// avxvnni     avx2 and AVX-VNNI
/// avx512vnni  avx2 and AVX-512 F, BW, DQ, VL, VBMI, VNNI together
/// amx         avx512vnni and AMX-TILE, AMX-INT8, which Linux is asked for, once for all threads of
///             the process; a thread that uses tiles has 8 KiB more state to save
bool cpu_has(Level level);

/// The highest level that cpu_has().
Level detect_level();

}  // namespace hf::cpu
