// Puts the integer dots of all levels into a format's functions.
#pragma once

#include "cpuexec/formats/avx512.h"
#include "cpuexec/formats/avxvnni.h"
#include "cpuexec/formats/block_ops.h"

namespace hf::cpu {

template <class F, Activations a>
constexpr void set_dots(CpuOps& ops) {
    ops.dot[size_t(Level::avx2)][size_t(a)] = avx2::dot<F, a>;
    ops.dot[size_t(Level::avxvnni)][size_t(a)] = avxvnni::dot<F, a>;
    ops.dot[size_t(Level::avx512vnni)][size_t(a)] = avx512::dot<F, a>;
}

/// Adds them to the functions of a format that dot_shape.h describes.
template <class F>
constexpr CpuOps with_integers(CpuOps ops) {
    ops = with_terms<F>(ops);
    set_dots<F, Activations::i16>(ops);
    set_dots<F, Activations::int8>(ops);
    return ops;
}

}  // namespace hf::cpu
