// Steps: a model's forward pass as a list, the same for one token and for many.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/model/slots.h"
#include "libcore/model/weight.h"

namespace hf {

/// What a step does; each has one row in libcore/ops/ops_table.cpp.
enum class Op : uint8_t {
    embed,          // out = rows of w for the token ids
    take_rows,      // out = the rows of in that want logits
    copy,           // columns [offset, offset + width) of out = in
    rmsnorm,        // out = in / rms(in) * w
    gemv,           // out = w in
    gemv_residual,  // out = out + w in
    add_bias,       // out = out + w, in place
    rotate,         // out = R (in / awq scale), what the format of w (not read) expects
    prepare,        // out = in as the integers that the format of w (not read) is multiplied with
    head_norm,      // rmsnorm per head; the input's heads may be strided
    rope,           // rotates pairs of each head by pos * w[i], in place
    kv_write,       // cache rows of this pass = in[0] (k), in[1] (v)
    attend,         // out = softmax(q K^T / sqrt(head_dim)) V over the cache
    output_gate,    // out = in[0] * sigmoid(in[1]); the gate's heads may be strided
    conv_silu,      // commits; causal depthwise convolution, then silu; keeps raw inputs pending
    delta_norm_qk,  // q, k of each key head to unit length, q / sqrt(key_dim), in place
    delta_gates,    // out[0] = g = w softplus(in[0] + aux), out[1] = beta = sigmoid(in[1])
    delta_rule,     // commits; gated delta rule against that state; keeps its rows pending
    delta_keep,     // keeps the k of in pending, once delta_rule has no more use for those before
    gated_norm,     // out = rmsnorm per value head of in[0], times silu(in[1])
    silu_mul,       // out = silu(in[0]) * in[1]
    conv_commit,    // the first `count` pending rows become the convolution's state
    delta_commit,   // the same for the recurrent state
    count_,
};

/// y = w x, the ops that read matrices and can be cut by rows.
constexpr bool is_product(Op op) {
    return op == Op::gemv || op == Op::gemv_residual;
}

/// Which dims of a head turn together: (i, i + rotary/2), or (2i, 2i + 1) where a converter
/// permuted the rows of q and k for it (llama in GGUF).
enum class RopePairs : uint8_t { half_split, adjacent };

/// Numbers that belong to a step. An op reads the fields that its row in the table names.
struct OpParams {
    float eps = 0;       // rmsnorm, head_norm, gated_norm
    uint32_t heads = 0;  // head_norm, rope, attend, output_gate, gated_norm
    uint32_t head_dim = 0;
    uint32_t stride = 0;  // head_norm: between heads of the input; output_gate: of the gate
    uint32_t offset = 0;  // head_norm, output_gate: first column in a head; copy: in the output
    uint32_t rotary = 0;  // rope: dims that turn, from the start of each head
    RopePairs pairs = RopePairs::half_split;  // rope
    uint32_t state = 0;                       // which attention or delta layer of the slab
    uint32_t row_begin = 0, row_end = 0;      // products: the rows of w that are computed
    /// gemv, gemv_residual, prepare: what the input is, or becomes
    cpu::Activations activations = cpu::Activations::f32;
};

struct Step {
    Op op = Op::count_;
    const Weight* w = nullptr;    // the matrix or vector, or null
    const Weight* aux = nullptr;  // a second vector (delta_gates: time-step bias)
    Slot in[4], out[4];
    OpParams params;
    uint32_t layer = kNoLayer;  // for printing and for planners

    static constexpr uint32_t kNoLayer = 0xffffffff;
};

/// A list of steps with one function per op, so that a layer reads like its formula.
/// Slots and weights are as in the op's line above; widths are checked by HF_ASSERT.
struct StepList {
    std::vector<Step> steps;
    uint32_t layer = Step::kNoLayer;  // stamped on every step that is added

    void embed(const Weight& table, Slot out);
    void take_rows(Slot in, Slot out);
    void copy(Slot in, Slot out, uint32_t offset);
    void rmsnorm(Slot in, const Weight& w, float eps, Slot out);
    void gemv(const Weight& w, Slot in, Slot out);
    void gemv_residual(const Weight& w, Slot in, Slot residual);
    void head_norm(Slot in, const Weight& w, float eps, uint32_t heads, uint32_t stride, Slot out);
    void add_bias(const Weight& bias, Slot x);
    void rotate(const Weight& like, Slot in, Slot out);
    void prepare(const Weight& like, cpu::Activations activations, Slot in, Slot out);
    void rope(Slot x, const Weight& freqs, uint32_t heads, RopePairs pairs);
    void kv_write(Slot k, Slot v, uint32_t state);
    void attend(Slot q, uint32_t heads, uint32_t state, Slot out);
    void output_gate(Slot x, Slot gate, uint32_t heads, uint32_t stride, uint32_t offset, Slot out);
    void conv_silu(Slot m, const Weight& w, uint32_t state, Slot out);
    void delta_norm_qk(Slot qkv, uint32_t state);
    void delta_gates(Slot a, Slot b, const Weight& decay, const Weight& dt_bias, Slot g, Slot beta);
    void delta_rule(Slot qkv, Slot g, Slot beta, uint32_t state, Slot out);
    void delta_keep(Slot qkv, uint32_t state);
    void gated_norm(Slot x, Slot gate, const Weight& w, float eps, uint32_t heads, Slot out);
    void silu_mul(Slot gate, Slot up, Slot out);
    void conv_commit(uint32_t state);
    void delta_commit(uint32_t state);

  private:
    Step& add(Op op, std::initializer_list<Slot> in, std::initializer_list<Slot> out,
              const Weight* w = nullptr);
    void add_product(Op op, const Weight& w, std::initializer_list<Slot> in, Slot out);
};

}  // namespace hf
