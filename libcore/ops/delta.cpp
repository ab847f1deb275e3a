// The gated delta net: convolution, gates, the delta rule for one token or a chunk, and commits.
// Formulas: Yang et al., "Gated Delta Networks", arXiv 2412.06464.
#include <algorithm>
#include <cmath>

#include "cpuexec/formats/formats.h"
#include "cpuexec/vector_math.h"
#include "libcore/base/error.h"
#include "libcore/ops/host_ops.h"
#include "libcore/ops/math.h"

namespace hf::host {
namespace {

constexpr uint32_t kMaxChunk = 64;  // tokens in a pass
constexpr uint32_t kMaxTaps = 16;   // the config reader checks both
constexpr uint32_t kMaxValueDim = 512;

const DeltaLayer& layer_of(const Step& step, const Tokens& tokens) {
    return tokens.state_layout->delta_layers[step.params.state];
}

/// Which key head a value head listens to.
uint32_t key_head(const StateSpec& s, uint32_t value_head) {
    return s.head_order == HeadOrder::grouped ? value_head / (s.value_heads / s.key_heads)
                                              : value_head % s.key_heads;
}

/// c[i] = g_0 + .. + g_i of one value head.
void sum_decays(const float* g, size_t stride, uint32_t n, float* c) {
    float sum = 0;
    for (uint32_t i = 0; i < n; ++i) c[i] = sum += g[i * stride];
}

/// exp(s x - shift), of what is 0 or less. Below 2^-64 it is none: such a share of a number is lost
/// in any sum, and products with it would be denormal, which takes a CPU a hundred times longer.
void fade_of(const cpu::VectorMath& math, const float* x, float s, float shift, uint32_t n,
             float* out) {
    math.exp_shifted(x, s, shift, n, out);
    for (uint32_t i = 0; i < n; ++i) out[i] = out[i] < 0x1p-64f ? 0.0f : out[i];
}

/// The first n pending inputs of some channels become state. The convolution remembers the last
/// K - 1: those of the state, then the pending ones.
void commit_inputs(const DeltaLayer& layer, const Tokens& tokens, uint32_t n, Range some) {
    const StateSpec& spec = tokens.state_layout->spec;
    const uint64_t channels = spec.channels();
    const uint32_t kept = spec.conv_kernel - 1;
    float* conv = tokens.at<float>(layer.conv);
    for (uint32_t r = 0; r < kept; ++r) {  // upwards: a row is read before it is overwritten
        const uint32_t from = r + n;
        const float* row = from < kept
                               ? conv + from * channels
                               : tokens.at<float>(layer.pending_m) + (from - kept) * channels;
        std::copy(row + some.begin, row + some.end, conv + r * channels + some.begin);
    }
}

/// The first n pending rows of value head h become state:
/// S = exp(c_last) S + sum over i of exp(c_last - c_i) k_i d_i^T, i upwards. Some rows of S at a
/// time, so that S is read and written once.
void commit_head(const DeltaLayer& layer, const Tokens& tokens, uint32_t n, uint32_t h) {
    constexpr uint32_t kRows = 16;
    const StateSpec& spec = tokens.state_layout->spec;
    const cpu::VectorMath& math = cpu::vector_math(tokens.level);
    const uint32_t dk = spec.key_dim, dv = spec.value_dim, heads = spec.value_heads;
    HF_ASSERT(n >= 1 && n <= kMaxChunk);

    float c[kMaxChunk], fade[kMaxChunk], decay;
    sum_decays(tokens.at<float>(layer.pending_g) + h, heads, n, c);
    fade_of(math, c, -1, -c[n - 1], n, fade);
    fade_of(math, &c[n - 1], 1, 0, 1, &decay);
    const float* k = tokens.at<float>(layer.pending_k) + key_head(spec, h) * dk;
    const float* d = tokens.at<float>(layer.pending_d) + h * dv;
    float* s = tokens.at<float>(layer.s) + uint64_t(h) * dk * dv;
    for (uint32_t a0 = 0; a0 < dk; a0 += kRows) {
        float weights[kRows][kMaxChunk];
        const float* weights_of[kRows];
        float* rows[kRows];
        const uint32_t count = std::min(kRows, dk - a0);
        for (uint32_t a = 0; a < count; ++a) {
            for (uint32_t i = 0; i < n; ++i)
                weights[a][i] = fade[i] * k[uint64_t(i) * spec.key_heads * dk + a0 + a];
            weights_of[a] = weights[a];
            rows[a] = s + uint64_t(a0 + a) * dv;
        }
        math.scale(rows[0], decay, count * dv, rows[0]);
        math.add_weighted({count, n, dv, weights_of, d, heads * dv, rows});
    }
}

/// The delta rule of one value head.
struct DeltaHead {
    const Step& step;
    const Tokens& tokens;
    const uint32_t h;

    const StateSpec& spec = tokens.state_layout->spec;
    const DeltaLayer& layer = layer_of(step, tokens);
    const cpu::VectorMath& math = cpu::vector_math(tokens.level);
    const uint32_t n = tokens.count, dk = spec.key_dim, dv = spec.value_dim;
    const uint32_t key_width = spec.key_heads * dk, d_stride = spec.value_heads * dv;

    float* q(uint32_t i) const { return tokens.row(step.in[0], i) + key_head(spec, h) * dk; }
    float* k(uint32_t i) const { return q(i) + key_width; }
    float* v(uint32_t i) const { return tokens.row(step.in[0], i) + 2 * key_width + h * dv; }
    float* d(uint32_t i) const {
        return tokens.at<float>(layer.pending_d) + uint64_t(i) * d_stride + h * dv;
    }
    float* o(uint32_t i) const { return tokens.row(step.out[0], i) + h * dv; }

    void run() const {
        float c[kMaxChunk], decay[kMaxChunk];
        const float* g = tokens.row(step.in[1], 0) + h;
        sum_decays(g, step.in[1].width, n, c);
        fade_of(math, c, 1, 0, n, decay);
        if (n == 1 && tokens.commits == 1) {
            read_updated_state();
        } else {
            if (tokens.commits > 0) commit_head(layer, tokens, tokens.commits, h);
            read_state();
        }
        for (uint32_t i = 0; i < n; ++i) {
            tokens.at<float>(layer.pending_g)[uint64_t(i) * spec.value_heads + h] =
                g[i * step.in[1].width];
            for (uint32_t e = 0; e < dv; ++e) d(i)[e] = v(i)[e] - decay[i] * d(i)[e];
            math.scale(o(i), decay[i], dv, o(i));
            add_earlier(i, c);
        }
    }

    /// o_i = S^T q_i and d_i = S^T k_i of all tokens.
    void read_state() const {
        const float* weights[2 * kMaxChunk];
        float* out[2 * kMaxChunk];
        for (uint32_t i = 0; i < n; ++i) {
            weights[2 * i] = q(i), out[2 * i] = o(i);
            weights[2 * i + 1] = k(i), out[2 * i + 1] = d(i);
            std::fill_n(o(i), dv, 0.0f);
            std::fill_n(d(i), dv, 0.0f);
        }
        const float* s = tokens.at<float>(layer.s) + uint64_t(h) * dk * dv;
        math.add_weighted({2 * n, dk, dv, weights, s, dv, out});
    }

    /// The same after a commit of one token, for one: S is read and written once.
    void read_updated_state() const {
        float decay, last_d[kMaxValueDim];
        fade_of(math, tokens.at<float>(layer.pending_g) + h, 1, 0, 1, &decay);
        std::copy_n(d(0), dv, last_d);
        std::fill_n(o(0), dv, 0.0f);
        std::fill_n(d(0), dv, 0.0f);
        math.update({.rows = dk,
                     .cols = dv,
                     .x = tokens.at<float>(layer.s) + uint64_t(h) * dk * dv,
                     .decay = decay,
                     .u = tokens.at<float>(layer.pending_k) + key_head(spec, h) * dk,
                     .v = last_d,
                     .weights = {q(0), k(0)},
                     .out = {o(0), d(0)}});
    }

    /// What token i owes to those before it in this pass, and o_i to its own d_i.
    void add_earlier(uint32_t i, const float* c) const {
        const cpu::WeightView keys{reinterpret_cast<const std::byte*>(k(0)), n, dk,
                                   step.in[0].width * sizeof(float), nullptr};
        float fade[kMaxChunk], for_q[kMaxChunk], for_k[kMaxChunk], products[2][kMaxChunk];
        cpu::pick_dot(cpu::f32, tokens.level, cpu::Activations::f32)(
            keys, 0, i + 1, {q(i), key_width, 2}, products[0], kMaxChunk);
        fade_of(math, c, -1, -c[i], i + 1, fade);
        for (uint32_t j = 0; j <= i; ++j) {
            for_q[j] = fade[j] * products[0][j];
            for_k[j] = -fade[j] * products[1][j];
        }
        add_rows(for_k, i, d(i));
        math.scale(d(i), tokens.row(step.in[2], i)[h], dv, d(i));
        add_rows(for_q, i + 1, o(i));
    }

    /// out += sum over j of weights[j] d_j
    void add_rows(const float* weights, uint32_t terms, float* out) const {
        math.add_weighted({1, terms, dv, &weights, d(0), d_stride, &out});
    }
};

}  // namespace

/// y[t][c] = silu(sum over j of w[c][j] m[t - (K - 1) + j][c]): the last tap meets the newest
/// input. Rows before this pass come from the state. Taps are added from the oldest to the newest.
void conv_silu(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const StateSpec& spec = tokens.state_layout->spec;
    const DeltaLayer& layer = layer_of(step, tokens);
    const uint64_t channels = spec.channels();
    const uint32_t taps = spec.conv_kernel;
    HF_ASSERT(taps <= kMaxTaps);
    const Range range = piece(channels, part, parts, 16);
    if (tokens.commits > 0) commit_inputs(layer, tokens, tokens.commits, range);
    const uint64_t n = range.end - range.begin;
    const float* w = step.w->values(tokens.lane) + range.begin * taps;
    for (uint32_t t = 0; t < tokens.count; ++t) {
        const float* m[kMaxTaps];
        for (uint32_t j = 0; j < taps; ++j) {
            const uint32_t row = t + j;  // of the state's taps - 1 rows followed by m
            m[j] = range.begin + (row < taps - 1 ? tokens.at<float>(layer.conv) + row * channels
                                                 : tokens.row(step.in[0], row - (taps - 1)));
        }
        cpu::vector_math(tokens.level)
            .conv_silu(w, m, taps, n, tokens.row(step.out[0], t) + range.begin);
        std::copy_n(m[taps - 1], n, tokens.at<float>(layer.pending_m) + t * channels + range.begin);
    }
}

/// q and k of each key head to length 1 (epsilon 1e-6 under the root, as in Hugging Face's
/// implementation), then q / sqrt(key_dim).
void delta_norm_qk(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const StateSpec& spec = tokens.state_layout->spec;
    const uint32_t dim = spec.key_dim, heads = spec.key_heads;
    const float q_scale = 1.0f / std::sqrt(float(dim));
    const cpu::VectorMath& math = cpu::vector_math(tokens.level);
    const Range range = piece(uint64_t(tokens.count) * heads, part, parts);
    for (uint64_t i = range.begin; i < range.end; ++i) {
        const uint64_t t = i / heads, head = i % heads;
        float* q = tokens.row(step.out[0], t) + head * dim;
        float* k = q + heads * dim;
        math.scale(q, q_scale / std::sqrt(math.dot(q, q, dim) + 1e-6f), dim, q);
        math.scale(k, 1.0f / std::sqrt(math.dot(k, k, dim) + 1e-6f), dim, k);
    }
}

void delta_gates(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const uint32_t heads = step.in[0].width;
    const Range rows = piece(tokens.count, part, parts);
    for (uint64_t t = rows.begin; t < rows.end; ++t) {
        const float* a = tokens.row(step.in[0], t);
        const float* b = tokens.row(step.in[1], t);
        for (uint32_t h = 0; h < heads; ++h) {
            const float rate = softplus(a[h] + step.aux->values(tokens.lane)[h]);
            tokens.row(step.out[0], t)[h] = step.w->values(tokens.lane)[h] * rate;
            tokens.row(step.out[1], t)[h] = sigmoid(b[h]);
        }
    }
}

/// With S the committed state, c as above, and rows i = 0 .. count - 1 of this pass:
///   d_i = beta_i (v_i - exp(c_i) S^T k_i - sum over j < i of exp(c_i - c_j) (k_i . k_j) d_j)
///   o_i = exp(c_i) S^T q_i + sum over j <= i of exp(c_i - c_j) (q_i . k_j) d_j
/// For one token this is the plain rule; for a chunk it is the forward substitution of the chunked
/// form. S is read once for all q and k, right after what this pass commits went into it. Sums over
/// key dims and over j run upwards.
void delta_rule(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const StateSpec& spec = tokens.state_layout->spec;
    const uint32_t heads = spec.value_heads;
    HF_ASSERT(tokens.count <= kMaxChunk);
    const Range range = piece(heads, part, parts);
    for (uint32_t h = uint32_t(range.begin); h < range.end; ++h) DeltaHead{step, tokens, h}.run();
}

/// A step of its own, for value heads share keys: the last one reads the rows of the pass before.
void delta_keep(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const StateSpec& spec = tokens.state_layout->spec;
    const uint32_t key_width = spec.key_heads * spec.key_dim;
    float* pending_k = tokens.at<float>(layer_of(step, tokens).pending_k);
    const Range rows = piece(tokens.count, part, parts);
    for (uint64_t t = rows.begin; t < rows.end; ++t)
        std::copy_n(tokens.row(step.in[0], t) + key_width, key_width, pending_k + t * key_width);
}

void conv_commit(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    commit_inputs(layer_of(step, tokens), tokens, tokens.count,
                  piece(tokens.state_layout->spec.channels(), part, parts, 16));
}

void delta_commit(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const Range heads = piece(tokens.state_layout->spec.value_heads, part, parts);
    for (uint32_t h = uint32_t(heads.begin); h < heads.end; ++h)
        commit_head(layer_of(step, tokens), tokens, tokens.count, h);
}

}  // namespace hf::host
