// The feed-forward block that all architectures share.
#pragma once

#include "libcore/arch/arch.h"

namespace hf {

/// x += down(silu(gate h) * up h), h = rmsnorm(x)
inline void emit_ffn(StepList& s, const ModelConfig& c, const LayerWeights& w,
                     const Activations& a) {
    s.rmsnorm(a.x, w[Role::ffn_norm], c.rms_eps, a.h);
    s.gemv(w[Role::ffn_gate], a.h, a.gate);
    s.gemv(w[Role::ffn_up], a.h, a.up);
    s.silu_mul(a.gate, a.up, a.gate);
    s.gemv_residual(w[Role::ffn_down], a.gate, a.x);
}

}  // namespace hf
