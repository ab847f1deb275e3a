// The host functions of the ops, one file per family. All are HostFn; steps.h says what each
// computes, the file says how, in which order it sums, and where the formula comes from.
#pragma once

#include "libcore/model/steps.h"
#include "libcore/model/tokens.h"

namespace hf::host {

#define HF_HOST_FN(name) \
    void name(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts)

// linear.cpp
HF_HOST_FN(embed);
HF_HOST_FN(gemv);
HF_HOST_FN(gemv_residual);
HF_HOST_FN(rotate);
HF_HOST_FN(prepare);
// pointwise.cpp
HF_HOST_FN(take_rows);
HF_HOST_FN(copy);
HF_HOST_FN(rmsnorm);
HF_HOST_FN(add_bias);
HF_HOST_FN(head_norm);
HF_HOST_FN(rope);
HF_HOST_FN(output_gate);
HF_HOST_FN(silu_mul);
HF_HOST_FN(gated_norm);
// attention.cpp
HF_HOST_FN(kv_write);
HF_HOST_FN(attend);
// delta.cpp
HF_HOST_FN(conv_silu);
HF_HOST_FN(delta_norm_qk);
HF_HOST_FN(delta_gates);
HF_HOST_FN(delta_rule);
HF_HOST_FN(delta_keep);
HF_HOST_FN(conv_commit);
HF_HOST_FN(delta_commit);

#undef HF_HOST_FN

/// Columns that are prepared at once: whole units of every format (cpuexec/activations.h).
inline constexpr uint64_t kPreparedCols = 1024;

/// The half-open range of `total` items that piece `part` of `parts` does; borders are multiples
/// of `unit`.
struct Range {
    uint64_t begin, end;
};
inline Range piece(uint64_t total, uint32_t part, uint32_t parts, uint64_t unit = 1) {
    const uint64_t units = (total + unit - 1) / unit;
    const uint64_t begin = units * part / parts * unit, end = units * (part + 1) / parts * unit;
    return {begin, end < total ? end : total};
}

}  // namespace hf::host
