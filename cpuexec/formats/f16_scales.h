// Scales of formats whose terms have f16 numbers of their own: a scale, or a scale and a zero.
#pragma once

#include "cpuexec/formats/avx2.h"
#include "cpuexec/formats/avx512.h"

namespace hf::cpu {

/// A scale at the beginning of each block, a block for each term.
template <class Block>
struct F16Scales {
    HF_AVX2_INLINE static void scales(avx2::Isa, Rows w, size_t, avx2::Floats& scale,
                                      avx2::Floats&) {
        scale = avx2::load_f16<sizeof(Block)>(w, 0);
    }
    HF_AVX512_INLINE static void scales(avx512::Isa, Rows w, size_t, avx512::Floats& scale,
                                        avx512::Floats&) {
        scale = avx512::load_f16<sizeof(Block)>(w, 0);
    }
};

/// The same where four blocks are near enough to each other for one load.
template <class Block>
struct F16ScalesNear {
    HF_AVX2_INLINE static void scales(avx2::Isa isa, Rows w, size_t v, avx2::Floats& scale,
                                      avx2::Floats& zero) {
        F16Scales<Block>::scales(isa, w, v, scale, zero);
    }
    HF_AVX512_INLINE static void scales(avx512::Isa, Rows w, size_t, avx512::Floats& scale,
                                        avx512::Floats&) {
        scale = avx512::load_f16_near<sizeof(Block)>(w);
    }
};

/// A scale and a zero, side by side: those of term t lie at F::pair_at(t).
template <class F>
struct F16Pairs {
    static constexpr bool exact_products = true;  // of a scale and a code: 11 bits and 6
    HF_AVX2_INLINE static void scales(avx2::Isa, Rows w, size_t, avx2::Floats& scale,
                                      avx2::Floats& zero) {
        avx2::load_f16_pairs<F>(w, scale, zero);
    }
    HF_AVX512_INLINE static void scales(avx512::Isa, Rows w, size_t, avx512::Floats& scale,
                                        avx512::Floats& zero) {
        avx512::load_f16_pairs<F>(w, scale, zero);
    }
};

}  // namespace hf::cpu
