#include "libcore/model/steps.h"

#include <algorithm>

#include "cpuexec/activations.h"
#include "libcore/base/error.h"

namespace hf {

Step& StepList::add(Op op, std::initializer_list<Slot> in, std::initializer_list<Slot> out,
                    const Weight* w) {
    Step& step = steps.emplace_back();
    step.op = op;
    step.w = w;
    std::copy(in.begin(), in.end(), step.in);
    std::copy(out.begin(), out.end(), step.out);
    step.layer = layer;
    return step;
}

void StepList::add_product(Op op, const Weight& w, std::initializer_list<Slot> in, Slot out) {
    HF_ASSERT(w.shape.rows <= UINT32_MAX);
    add(op, in, {out}, &w).params.row_end = uint32_t(w.shape.rows);
}

void StepList::embed(const Weight& table, Slot out) {
    HF_ASSERT(table.shape.cols == out.width);
    add(Op::embed, {}, {out}, &table);
}

void StepList::take_rows(Slot in, Slot out) {
    HF_ASSERT(in.width == out.width && in.rows == Rows::tokens && out.rows == Rows::logits);
    add(Op::take_rows, {in}, {out});
}

void StepList::copy(Slot in, Slot out, uint32_t offset) {
    HF_ASSERT(offset + in.width <= out.width && in.rows == out.rows);
    add(Op::copy, {in}, {out}).params.offset = offset;
}

void StepList::rmsnorm(Slot in, const Weight& w, float eps, Slot out) {
    HF_ASSERT(w.shape.cols == in.width && in.width == out.width);
    add(Op::rmsnorm, {in}, {out}, &w).params.eps = eps;
}

void StepList::gemv(const Weight& w, Slot in, Slot out) {
    HF_ASSERT(w.shape.cols == in.width && w.shape.rows == out.width);
    add_product(Op::gemv, w, {in}, out);
}

void StepList::gemv_residual(const Weight& w, Slot in, Slot residual) {
    HF_ASSERT(w.shape.cols == in.width && w.shape.rows == residual.width);
    add_product(Op::gemv_residual, w, {in, residual}, residual);
}

void StepList::head_norm(Slot in, const Weight& w, float eps, uint32_t heads, uint32_t stride,
                         Slot out) {
    HF_ASSERT(uint64_t(heads) * stride == in.width && heads * w.shape.cols == out.width);
    Step& step = add(Op::head_norm, {in}, {out}, &w);
    step.params.eps = eps;
    step.params.heads = heads;
    step.params.head_dim = uint32_t(w.shape.cols);
    step.params.stride = stride;
}

void StepList::add_bias(const Weight& bias, Slot x) {
    HF_ASSERT(bias.shape.cols == x.width);
    add(Op::add_bias, {x}, {x}, &bias);
}

void StepList::rotate(const Weight& like, Slot in, Slot out) {
    HF_ASSERT(in.width == like.shape.cols && in.rows == out.rows &&
              out.width == activation_cols(*like.codec, in.width));
    add(Op::rotate, {in}, {out}, &like);
}

void StepList::prepare(const Weight& like, cpu::Activations activations, Slot in, Slot out) {
    HF_ASSERT(in.rows == out.rows &&
              out.width == cpu::prepared_floats(like.codec->cpu.prepare, activations, in.width));
    add(Op::prepare, {in}, {out}, &like).params.activations = activations;
}

void StepList::rope(Slot x, const Weight& freqs, uint32_t heads, RopePairs pairs) {
    Step& step = add(Op::rope, {x}, {x}, &freqs);
    step.params.heads = heads;
    step.params.head_dim = x.width / heads;
    step.params.rotary = uint32_t(2 * freqs.shape.cols);
    step.params.pairs = pairs;
    HF_ASSERT(step.params.rotary <= step.params.head_dim);
}

void StepList::kv_write(Slot k, Slot v, uint32_t state) {
    HF_ASSERT(k.width == v.width);
    add(Op::kv_write, {k, v}, {}).params.state = state;
}

void StepList::attend(Slot q, uint32_t heads, uint32_t state, Slot out) {
    HF_ASSERT(q.width == out.width && q.width % heads == 0);
    Step& step = add(Op::attend, {q}, {out});
    step.params.heads = heads;
    step.params.head_dim = q.width / heads;
    step.params.state = state;
}

void StepList::output_gate(Slot x, Slot gate, uint32_t heads, uint32_t stride, uint32_t offset,
                           Slot out) {
    HF_ASSERT(x.width == out.width && uint64_t(heads) * stride == gate.width);
    Step& step = add(Op::output_gate, {x, gate}, {out});
    step.params.heads = heads;
    step.params.head_dim = x.width / heads;
    step.params.stride = stride;
    step.params.offset = offset;
}

void StepList::conv_silu(Slot m, const Weight& w, uint32_t state, Slot out) {
    HF_ASSERT(w.shape.rows == m.width && m.width == out.width && m != out);
    add(Op::conv_silu, {m}, {out}, &w).params.state = state;
}

void StepList::delta_norm_qk(Slot qkv, uint32_t state) {
    add(Op::delta_norm_qk, {qkv}, {qkv}).params.state = state;
}

void StepList::delta_gates(Slot a, Slot b, const Weight& decay, const Weight& dt_bias, Slot g,
                           Slot beta) {
    HF_ASSERT(decay.shape.cols == a.width && dt_bias.shape.cols == a.width && a.width == b.width);
    add(Op::delta_gates, {a, b}, {g, beta}, &decay).aux = &dt_bias;
}

void StepList::delta_rule(Slot qkv, Slot g, Slot beta, uint32_t state, Slot out) {
    add(Op::delta_rule, {qkv, g, beta}, {out}).params.state = state;
}

void StepList::delta_keep(Slot qkv, uint32_t state) {
    add(Op::delta_keep, {qkv}, {}).params.state = state;
}

void StepList::gated_norm(Slot x, Slot gate, const Weight& w, float eps, uint32_t heads, Slot out) {
    HF_ASSERT(x.width == gate.width && x.width == out.width && heads * w.shape.cols == x.width);
    Step& step = add(Op::gated_norm, {x, gate}, {out}, &w);
    step.params.eps = eps;
    step.params.heads = heads;
    step.params.head_dim = uint32_t(w.shape.cols);
}

void StepList::silu_mul(Slot gate, Slot up, Slot out) {
    HF_ASSERT(gate.width == up.width && gate.width == out.width);
    add(Op::silu_mul, {gate, up}, {out});
}

void StepList::conv_commit(uint32_t state) {
    add(Op::conv_commit, {}, {}).params.state = state;
}

void StepList::delta_commit(uint32_t state) {
    add(Op::delta_commit, {}, {}).params.state = state;
}

}  // namespace hf
