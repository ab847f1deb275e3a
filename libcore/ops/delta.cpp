// The gated delta net: convolution, gates, the delta rule for one token or a chunk, and commits.
// Formulas: Yang et al., "Gated Delta Networks", arXiv 2412.06464.
#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/ops/host_ops.h"
#include "libcore/ops/math.h"

namespace hf::host {
namespace {

constexpr uint32_t kMaxChunk = 64;      // tokens in a pass
constexpr uint32_t kMaxValueDim = 512;  // the config reader checks it

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

}  // namespace

/// y[t][c] = silu(sum over j of w[c][j] m[t - (K - 1) + j][c]): the last tap meets the newest
/// input. Rows before this pass come from the state. Taps are added from the oldest to the newest.
void conv_silu(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const StateSpec& spec = tokens.state_layout->spec;
    const DeltaLayer& layer = layer_of(step, tokens);
    const uint64_t channels = spec.channels();
    const uint32_t taps = spec.conv_kernel;
    const Range range = piece(channels, part, parts, 16);
    const float* w = step.w->values(tokens.lane);
    for (uint32_t t = 0; t < tokens.count; ++t) {
        float* y = tokens.row(step.out[0], t);
        std::fill(y + range.begin, y + range.end, 0.0f);
        for (uint32_t j = 0; j < taps; ++j) {
            const uint32_t row = t + j;  // of the state's taps - 1 rows followed by m
            const float* m = row < taps - 1 ? tokens.at<float>(layer.conv) + row * channels
                                            : tokens.row(step.in[0], row - (taps - 1));
            for (uint64_t c = range.begin; c < range.end; ++c) y[c] += w[c * taps + j] * m[c];
        }
        for (uint64_t c = range.begin; c < range.end; ++c) y[c] = silu(y[c]);
        const float* m = tokens.row(step.in[0], t);
        std::copy(m + range.begin, m + range.end,
                  tokens.at<float>(layer.pending_m) + t * channels + range.begin);
    }
}

/// q and k of each key head to length 1 (epsilon 1e-6 under the root, as in Hugging Face's
/// implementation), then q / sqrt(key_dim). k stays in the pending rows.
void delta_norm_qk(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const StateSpec& spec = tokens.state_layout->spec;
    const uint32_t dim = spec.key_dim, heads = spec.key_heads;
    const float q_scale = 1.0f / std::sqrt(float(dim));
    const Range range = piece(uint64_t(tokens.count) * heads, part, parts);
    for (uint64_t i = range.begin; i < range.end; ++i) {
        const uint64_t t = i / heads, head = i % heads;
        float* q = tokens.row(step.out[0], t) + head * dim;
        float* k = q + heads * dim;
        const float q_length = std::sqrt(dot(q, q, dim) + 1e-6f);
        const float k_length = std::sqrt(dot(k, k, dim) + 1e-6f);
        for (uint32_t a = 0; a < dim; ++a) q[a] = q[a] / q_length * q_scale;
        for (uint32_t a = 0; a < dim; ++a) k[a] /= k_length;
        std::copy_n(k, dim,
                    tokens.at<float>(layer_of(step, tokens).pending_k) + (t * heads + head) * dim);
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
/// form. S is only read. Sums over key dims and over j run upwards.
void delta_rule(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const StateSpec& spec = tokens.state_layout->spec;
    const DeltaLayer& layer = layer_of(step, tokens);
    const uint32_t n = tokens.count, dk = spec.key_dim, dv = spec.value_dim;
    const uint32_t heads = spec.value_heads, key_width = spec.key_heads * dk;
    HF_ASSERT(n <= kMaxChunk && dv <= kMaxValueDim);

    const Range range = piece(heads, part, parts);
    for (uint32_t h = uint32_t(range.begin); h < range.end; ++h) {
        const uint32_t kh = key_head(spec, h);
        const auto q = [&](uint32_t i) { return tokens.row(step.in[0], i) + kh * dk; };
        const auto k = [&](uint32_t i) { return q(i) + key_width; };
        const auto v = [&](uint32_t i) {
            return tokens.row(step.in[0], i) + 2 * key_width + h * dv;
        };
        float* pending_d = tokens.at<float>(layer.pending_d);
        const auto d = [&](uint32_t i) { return pending_d + (uint64_t(i) * heads + h) * dv; };
        const float* s = tokens.at<float>(layer.s) + uint64_t(h) * dk * dv;

        float c[kMaxChunk], predicted[kMaxValueDim];
        const float* g = tokens.row(step.in[1], 0) + h;
        sum_decays(g, step.in[1].width, n, c);
        for (uint32_t i = 0; i < n; ++i) {
            tokens.at<float>(layer.pending_g)[uint64_t(i) * heads + h] = g[i * step.in[1].width];
            float* o = tokens.row(step.out[0], i) + h * dv;
            std::fill_n(predicted, dv, 0.0f);
            std::fill_n(o, dv, 0.0f);
            for (uint32_t a = 0; a < dk; ++a) {
                axpy(k(i)[a], s + a * dv, predicted, dv);
                axpy(q(i)[a], s + a * dv, o, dv);
            }
            const float decay = std::exp(c[i]);
            for (uint32_t e = 0; e < dv; ++e) d(i)[e] = v(i)[e] - decay * predicted[e];
            for (uint32_t e = 0; e < dv; ++e) o[e] *= decay;
            for (uint32_t j = 0; j < i; ++j) {
                const float fade = std::exp(c[i] - c[j]);
                axpy(-fade * dot(k(i), k(j), dk), d(j), d(i), dv);
                axpy(fade * dot(q(i), k(j), dk), d(j), o, dv);
            }
            const float beta = tokens.row(step.in[2], i)[h];
            for (uint32_t e = 0; e < dv; ++e) d(i)[e] *= beta;
            axpy(dot(q(i), k(i), dk), d(i), o, dv);
        }
    }
}

/// The convolution remembers the last K - 1 raw inputs: those of the state, then the pending rows.
void conv_commit(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const StateSpec& spec = tokens.state_layout->spec;
    const DeltaLayer& layer = layer_of(step, tokens);
    const uint64_t channels = spec.channels();
    const uint32_t kept = spec.conv_kernel - 1;
    const Range range = piece(channels, part, parts, 16);
    float* conv = tokens.at<float>(layer.conv);
    for (uint32_t r = 0; r < kept; ++r) {  // upwards: a row is read before it is overwritten
        const uint32_t from = r + tokens.count;
        const float* row = from < kept
                               ? conv + from * channels
                               : tokens.at<float>(layer.pending_m) + (from - kept) * channels;
        std::copy(row + range.begin, row + range.end, conv + r * channels + range.begin);
    }
}

/// S = exp(c_last) S + sum over i of exp(c_last - c_i) k_i d_i^T, i upwards.
void delta_commit(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const StateSpec& spec = tokens.state_layout->spec;
    const DeltaLayer& layer = layer_of(step, tokens);
    const uint32_t n = tokens.count, dk = spec.key_dim, dv = spec.value_dim;
    const uint32_t heads = spec.value_heads;
    HF_ASSERT(n >= 1 && n <= kMaxChunk);

    const Range range = piece(heads, part, parts);
    for (uint32_t h = uint32_t(range.begin); h < range.end; ++h) {
        const uint32_t kh = key_head(spec, h);
        float c[kMaxChunk];
        sum_decays(tokens.at<float>(layer.pending_g) + h, heads, n, c);
        float* s = tokens.at<float>(layer.s) + uint64_t(h) * dk * dv;
        const float decay = std::exp(c[n - 1]);
        for (uint64_t e = 0; e < uint64_t(dk) * dv; ++e) s[e] *= decay;
        for (uint32_t i = 0; i < n; ++i) {
            const float fade = std::exp(c[n - 1] - c[i]);
            const float* k =
                tokens.at<float>(layer.pending_k) + (uint64_t(i) * spec.key_heads + kh) * dk;
            const float* d = tokens.at<float>(layer.pending_d) + (uint64_t(i) * heads + h) * dv;
            for (uint32_t a = 0; a < dk; ++a) axpy(fade * k[a], d, s + uint64_t(a) * dv, dv);
        }
    }
}

}  // namespace hf::host
