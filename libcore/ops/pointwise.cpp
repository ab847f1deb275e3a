// Norms, rope, gates and copies: ops that read a row and write a row.
#include <algorithm>
#include <cmath>

#include "cpuexec/vector_math.h"
#include "libcore/ops/host_ops.h"

namespace hf::host {
namespace {

/// Calls f(t, h) for this piece's share of (rows of `slot`) x heads.
template <class F>
void for_heads(const Tokens& tokens, Slot slot, uint32_t heads, uint32_t part, uint32_t parts,
               F f) {
    const Range range = piece(uint64_t(tokens.rows(slot)) * heads, part, parts);
    for (uint64_t i = range.begin; i < range.end; ++i) f(i / heads, i % heads);
}

}  // namespace

void take_rows(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const Range rows = piece(tokens.logit_count, part, parts);
    for (uint64_t r = rows.begin; r < rows.end; ++r)
        std::copy_n(tokens.row(step.in[0], tokens.logit_rows[r]), step.in[0].width,
                    tokens.row(step.out[0], r));
}

void copy(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const Range rows = piece(tokens.rows(step.in[0]), part, parts);
    for (uint64_t t = rows.begin; t < rows.end; ++t)
        std::copy_n(tokens.row(step.in[0], t), step.in[0].width,
                    tokens.row(step.out[0], t) + step.params.offset);
}

void rmsnorm(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const cpu::VectorMath& math = cpu::vector_math(tokens.level);
    const Range rows = piece(tokens.rows(step.in[0]), part, parts);
    for (uint64_t t = rows.begin; t < rows.end; ++t)
        math.rmsnorm(tokens.row(step.in[0], t), step.w->values(tokens.lane), step.params.eps,
                     step.in[0].width, tokens.row(step.out[0], t));
}

void head_norm(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const OpParams& p = step.params;
    const cpu::VectorMath& math = cpu::vector_math(tokens.level);
    for_heads(tokens, step.out[0], p.heads, part, parts, [&](uint64_t t, uint64_t h) {
        math.rmsnorm(tokens.row(step.in[0], t) + h * p.stride + p.offset,
                     step.w->values(tokens.lane), p.eps, p.head_dim,
                     tokens.row(step.out[0], t) + h * p.head_dim);
    });
}

void add_bias(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const cpu::VectorMath& math = cpu::vector_math(tokens.level);
    const Range rows = piece(tokens.rows(step.in[0]), part, parts);
    for (uint64_t t = rows.begin; t < rows.end; ++t) {
        float* x = tokens.row(step.out[0], t);
        math.add(x, step.w->values(tokens.lane), step.out[0].width, x);
    }
}

/// The angle is formed in double: at position 262143 a float product would be off by 0.01.
void rope(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const OpParams& p = step.params;
    const uint32_t half = p.rotary / 2;
    const bool adjacent = p.pairs == RopePairs::adjacent;
    const uint32_t stride = adjacent ? 2 : 1, partner = adjacent ? 1 : half;
    const Range rows = piece(tokens.rows(step.in[0]), part, parts);
    for (uint64_t t = rows.begin; t < rows.end; ++t) {
        float* x = tokens.row(step.out[0], t);
        for (uint32_t i = 0; i < half; ++i) {
            const double angle = double(tokens.pos + t) * double(step.w->values(tokens.lane)[i]);
            const float c = float(std::cos(angle)), s = float(std::sin(angle));
            for (uint32_t h = 0; h < p.heads; ++h) {
                float& a = x[h * p.head_dim + i * stride];
                float& b = x[h * p.head_dim + i * stride + partner];
                const float turned = a * c - b * s;
                b = b * c + a * s;
                a = turned;
            }
        }
    }
}

void output_gate(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const OpParams& p = step.params;
    const cpu::VectorMath& math = cpu::vector_math(tokens.level);
    for_heads(tokens, step.out[0], p.heads, part, parts, [&](uint64_t t, uint64_t h) {
        const float* x = tokens.row(step.in[0], t) + h * p.head_dim;
        const float* gate = tokens.row(step.in[1], t) + h * p.stride + p.offset;
        math.mul_sigmoid(x, gate, p.head_dim, tokens.row(step.out[0], t) + h * p.head_dim);
    });
}

void silu_mul(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    // All three slots have the same width, so their rows can be walked as one vector.
    const Range range =
        piece(uint64_t(tokens.rows(step.in[0])) * step.in[0].width, part, parts, 16);
    const float* gate = tokens.row(step.in[0], 0) + range.begin;
    const float* up = tokens.row(step.in[1], 0) + range.begin;
    cpu::vector_math(tokens.level)
        .mul_silu(up, gate, range.end - range.begin, tokens.row(step.out[0], 0) + range.begin);
}

/// Norm first, then the gate (Gated DeltaNet's output).
void gated_norm(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const OpParams& p = step.params;
    const cpu::VectorMath& math = cpu::vector_math(tokens.level);
    for_heads(tokens, step.out[0], p.heads, part, parts, [&](uint64_t t, uint64_t h) {
        const size_t at = h * p.head_dim;
        const float* gate = tokens.row(step.in[1], t) + at;
        float* out = tokens.row(step.out[0], t) + at;
        math.rmsnorm(tokens.row(step.in[0], t) + at, step.w->values(tokens.lane), p.eps, p.head_dim,
                     out);
        math.mul_silu(out, gate, p.head_dim, out);
    });
}

}  // namespace hf::host
