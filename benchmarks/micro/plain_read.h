// Reading memory and nothing else: the yardstick of every product.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpuexec/codec_ops.h"

namespace hf::bench {

/// Loads `bytes` bytes, a multiple of 256, in the widest registers of the level (scalar: words of
/// 8 bytes). Returns the exclusive or of all words of 8 bytes, so that nothing can be left out.
///
/// sequential    from the first to the last
/// four_streams  four quarters side by side, as the products read rows; bytes is a multiple of 1024
uint64_t read_sequential(cpu::Level level, const std::byte* from, size_t bytes);
uint64_t read_four_streams(cpu::Level level, const std::byte* from, size_t bytes);

}  // namespace hf::bench
