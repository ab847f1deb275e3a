// Formats whose rows are blocks that are decoded one by one, through a buffer.
//
// A format F describes a block, and is compiled twice (codes.h):
//     F::Block                            a struct of blocks.h
//     F::weights                          weights in a block; divides kChunk
//     F::decode<P>(block, out)            writes them: the definition of the format
// or, when more than the block is needed (a row's header, a sidecar), a row instead:
//     F::stretch<P>(W, row, first, n, out)   as a Stretch
// and, unless it is for f32 only, how it wants integers:
//     F::prepare                          a Prepare; all terms begin in their own codes.h call
#pragma once

#include <algorithm>

#include "cpuexec/float16.h"
#include "cpuexec/formats/codes.h"
#include "cpuexec/formats/dot_f32.h"
#include "cpuexec/formats/dot_terms.h"

namespace hf::cpu {

template <class Block>
HF_INLINE const Block& block_at(const std::byte* from, size_t i) {
    return reinterpret_cast<const Block*>(from)[i];
}

/// Decodes n weights that begin with a block. In formats that pad rows the last block may be cut.
template <class F, class P>
HF_INLINE void decode_blocks(const std::byte* blocks, size_t n, float* out) {
    using Block = typename F::Block;
    const size_t whole = n / F::weights, rest = n % F::weights;
    for (size_t b = 0; b < whole; ++b)
        F::template decode<P>(block_at<Block>(blocks, b), out + b * F::weights);
    if constexpr (std::is_same_v<P, Terms>) {
        if (rest) F::template decode<P>(block_at<Block>(blocks, whole), out + whole * F::weights);
    } else if (rest) {
        float last[F::weights];
        F::template decode<P>(block_at<Block>(blocks, whole), last);
        std::copy_n(last, rest, out + whole * F::weights);
    }
}

template <class F, class P>
HF_INLINE void decode_stretch(const WeightView& W, size_t row, size_t first, size_t n, float* out) {
    if constexpr (requires { F::template stretch<P>(W, row, first, n, out); }) {
        F::template stretch<P>(W, row, first, n, out);
    } else {
        const size_t skipped = first / F::weights * sizeof(typename F::Block);
        decode_blocks<F, P>(W.base + row * W.row_bytes + skipped, n, out);
    }
}

template <class F>
void stretch_plain(const WeightView& W, size_t row, size_t first, size_t n, float* out) {
    decode_stretch<F, Plain>(W, row, first, n, out);
}
template <class F>
HF_AVX2 void stretch_avx2(const WeightView& W, size_t row, size_t first, size_t n, float* out) {
    decode_stretch<F, Avx2>(W, row, first, n, out);
}

template <class F>
void stretch_terms(const WeightView& W, size_t row, size_t first, size_t n, float* out) {
    decode_stretch<F, Terms>(W, row, first, n, out);
}

/// A format that is for f32 only, or that wants integers too.
template <class F>
concept HasIntegers = requires {
    F::prepare;
};

/// The plain integer dot of a format, for one kind of activations.
template <class F, Activations a>
void dot_terms(const WeightView& W, size_t r0, size_t r1, const Columns& X, float* y,
               size_t y_stride) {
    dot_terms_scalar(stretch_terms<F>, F::prepare, a, W, r0, r1, X, y, y_stride);
}

/// Adds the plain integer dots to a format's functions.
template <HasIntegers F>
constexpr CpuOps with_terms(CpuOps ops) {
    ops.prepare = F::prepare;
    ops.dot[size_t(Level::scalar)][size_t(Activations::i16)] = dot_terms<F, Activations::i16>;
    ops.dot[size_t(Level::scalar)][size_t(Activations::int8)] = dot_terms<F, Activations::int8>;
    return ops;
}

/// The functions of a format that is described in blocks or rows.
template <class F>
constexpr CpuOps block_ops() {
    const CpuOps ops = f32_ops<stretch_plain<F>, stretch_avx2<F>>();
    if constexpr (HasIntegers<F>)
        return with_terms<F>(ops);
    else
        return ops;
}

}  // namespace hf::cpu
