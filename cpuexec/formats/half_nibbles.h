// Nibbles in halves of several blocks as bytes, and the levels of a table that they stand for.
#pragma once

#include "cpuexec/formats/avx2.h"
#include "cpuexec/formats/avx512.h"
#include "cpuexec/formats/codes.h"

namespace hf::cpu {

/// Low nibbles of four blocks (half h: of two), then high ones.
template <class Block>
HF_AVX2_INLINE void unpack_halves(avx2::Isa, const std::byte* w, size_t h, __m256i* codes) {
    const std::byte* nibbles = w + 2 * h * sizeof(Block) + offsetof(Block, nibbles);
    const __m256i bytes = avx2::load_two(nibbles, nibbles + sizeof(Block));
    codes[0] = avx2::low_nibbles(bytes);
    codes[1] = avx2::high_nibbles(bytes);
}
template <class Block>
HF_AVX512_INLINE void unpack_halves(avx512::Isa, const std::byte* w, size_t, __m512i* codes) {
    const __m512i bytes = avx512::load_four(w + offsetof(Block, nibbles), sizeof(Block));
    codes[0] = avx512::low_nibbles(bytes);
    codes[1] = avx512::high_nibbles(bytes);
}

/// Where the nibbles of a block begin.
template <class Block>
constexpr size_t nibbles_of(size_t block) {
    return block * sizeof(Block) + offsetof(Block, nibbles);
}

/// Codes that are nibbles in halves.
template <class Block>
struct HalfNibbles {
    HF_AVX2_INLINE static void unpack(avx2::Isa isa, const std::byte* w, size_t, size_t, size_t h,
                                      __m256i* codes) {
        unpack_halves<Block>(isa, w, h, codes);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa isa, const std::byte* w, size_t, size_t,
                                        size_t h, __m512i* codes) {
        unpack_halves<Block>(isa, w, h, codes);
    }
};

/// times * level + more, of all levels.
struct ByteLevels {
    alignas(16) int8_t bytes[16] = {};
    constexpr ByteLevels(const Levels& levels, int times, int more) {
        for (size_t i = 0; i < 16; ++i) bytes[i] = int8_t(levels[i] * float(times) + float(more));
    }
};

HF_AVX2_INLINE __m256i look_up_bytes(const ByteLevels& levels, __m256i codes) {
    const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(levels.bytes));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), codes);
}
HF_AVX512_INLINE __m512i look_up_bytes(const ByteLevels& levels, __m512i codes) {
    const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(levels.bytes));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), codes);
}

/// Codes that are the levels of nibbles in halves.
template <class Block, const ByteLevels& levels>
struct HalfLevels {
    HF_AVX2_INLINE static void unpack(avx2::Isa isa, const std::byte* w, size_t, size_t, size_t h,
                                      __m256i* codes) {
        unpack_halves<Block>(isa, w, h, codes);
        codes[0] = look_up_bytes(levels, codes[0]);
        codes[1] = look_up_bytes(levels, codes[1]);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa isa, const std::byte* w, size_t, size_t,
                                        size_t h, __m512i* codes) {
        unpack_halves<Block>(isa, w, h, codes);
        codes[0] = look_up_bytes(levels, codes[0]);
        codes[1] = look_up_bytes(levels, codes[1]);
    }
};

}  // namespace hf::cpu
