// Puts the integer dots of all levels, and what comes with them, into a format's functions.
#pragma once

#include "cpuexec/formats/avx512.h"
#include "cpuexec/formats/avxvnni.h"
#include "cpuexec/formats/batch.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/levels_avx2.h"

namespace hf::cpu {

/// The dots of few columns and of many.
template <class F, Activations a>
void dot_avx512(const WeightView& W, size_t r0, size_t r1, const Columns& X, float* y,
                size_t y_stride) {
    if (X.count < kPanelColumns || !can_dot_panels())
        return avx512::dot<F, a>(W, r0, r1, X, y, y_stride);
    dot_panels_avx512(avx512::kPanelShape<F>, a, W, r0, r1, X, y, y_stride);
}
template <class F, Activations a>
void dot_amx(const WeightView& W, size_t r0, size_t r1, const Columns& X, float* y,
             size_t y_stride) {
    if (X.count < kAmxColumns || !can_dot_panels())
        return avx512::dot<F, a>(W, r0, r1, X, y, y_stride);
    dot_panels_amx(avx512::kPanelShape<F>, a, W, r0, r1, X, y, y_stride);
}

template <class F, Activations a>
constexpr void set_dots(CpuOps& ops) {
    ops.dot[size_t(Level::avx2)][size_t(a)] = avx2::dot<F, a>;
    ops.dot[size_t(Level::avxvnni)][size_t(a)] = avxvnni::dot<F, a>;
    ops.dot[size_t(Level::avx512vnni)][size_t(a)] = dot_avx512<F, a>;
    ops.dot[size_t(Level::amx)][size_t(a)] = dot_amx<F, a>;
}

/// Adds them to the functions of a format that dot_shape.h describes; if it has few levels, the f32
/// dot of levels.h too.
template <class F>
constexpr CpuOps with_integers(CpuOps ops) {
    ops = with_terms<F>(ops);
    set_dots<F, Activations::i16>(ops);
    set_dots<F, Activations::int8>(ops);
    if constexpr (HasLevels<F>) ops = with_levels<F>(ops);
    if constexpr (HasNibbles<F>) ops = with_levels_avx2<F>(ops);
    return ops;
}

}  // namespace hf::cpu
