// Attention over the key/value cache.
#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/ops/host_ops.h"
#include "libcore/ops/math.h"

namespace hf::host {
namespace {

constexpr uint32_t kBlock = 64;     // keys at a time, on the absolute grid
constexpr uint32_t kMaxGroup = 64;  // query heads per key head; the config reader checks both
constexpr uint32_t kMaxHeadDim = 512;

/// One key or value head of a layer's cache, as a matrix (max_seq, head_dim).
cpu::WeightView cache_head(const Tokens& tokens, uint64_t offset, uint32_t head) {
    const StateLayout& s = *tokens.state_layout;
    return {tokens.state + offset + head * s.kv->codec->row_bytes(s.spec.head_dim), s.max_seq,
            s.spec.head_dim, s.kv_row_bytes, nullptr};
}

/// Softmax over all keys in one walk: sums are kept relative to the largest score so far and are
/// rescaled when a larger one comes (Milakov and Gimelshein, arXiv 1805.02867).
struct RunningSoftmax {
    float largest = -std::numeric_limits<float>::infinity();
    float sum = 0;

    /// Turns n scores into weights and returns what earlier sums must be multiplied by.
    float take(float* score, uint32_t n) {
        const float top = std::max(largest, *std::max_element(score, score + n));
        const float rescale = std::exp(largest - top);
        largest = top;
        sum *= rescale;
        for (uint32_t j = 0; j < n; ++j) sum += score[j] = std::exp(score[j] - top);
        return rescale;
    }
};

/// All query heads of key head m for token t: they share the keys, so they are the columns of one
/// product.
void attend_group(const Step& step, const Tokens& tokens, uint32_t t, uint32_t m) {
    const StateLayout& state = *tokens.state_layout;
    const KvLayer& layer = state.kv_layers[step.params.state];
    const cpu::CpuOps& codec = state.kv->codec->cpu;
    const uint32_t dim = step.params.head_dim, group = step.params.heads / state.spec.kv_heads;
    HF_ASSERT(group <= kMaxGroup && dim <= kMaxHeadDim);

    const cpu::WeightView keys = cache_head(tokens, layer.k, m);
    const cpu::WeightView values = cache_head(tokens, layer.v, m);
    const cpu::Columns q{tokens.row(step.in[0], t) + m * group * dim, dim, group};
    float* out = tokens.row(step.out[0], t) + m * group * dim;
    const cpu::Dot dot_keys = cpu::pick_dot(codec, tokens.level, cpu::Activations::f32);
    const float scale = 1.0f / std::sqrt(float(dim));

    RunningSoftmax softmax[kMaxGroup];
    float score[kMaxGroup * kBlock], value[kMaxHeadDim];
    std::fill_n(out, group * dim, 0.0f);
    const uint32_t length = tokens.pos + t + 1;
    for (uint32_t j0 = 0; j0 < length; j0 += kBlock) {
        const uint32_t n = std::min(kBlock, length - j0);
        dot_keys(keys, j0, j0 + n, q, score, kBlock);
        for (uint32_t h = 0; h < group; ++h) {
            float* s = score + h * kBlock;
            for (uint32_t j = 0; j < n; ++j) s[j] *= scale;
            const float rescale = softmax[h].take(s, n);
            for (uint32_t i = 0; i < dim; ++i) out[h * dim + i] *= rescale;
        }
        for (uint32_t j = 0; j < n; ++j) {
            codec.decode_row(values, j0 + j, value);
            for (uint32_t h = 0; h < group; ++h)
                axpy(score[h * kBlock + j], value, out + h * dim, dim);
        }
    }
    for (uint32_t h = 0; h < group; ++h)
        for (uint32_t i = 0; i < dim; ++i) out[h * dim + i] /= softmax[h].sum;
}

}  // namespace

void kv_write(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const StateLayout& state = *tokens.state_layout;
    const KvLayer& layer = state.kv_layers[step.params.state];
    const Range rows = piece(tokens.count, part, parts);
    for (uint64_t t = rows.begin; t < rows.end; ++t) {
        const uint64_t at = (tokens.pos + t) * state.kv_row_bytes;
        const size_t width = step.in[0].width;
        state.kv->encode(tokens.row(step.in[0], t), width, tokens.state + layer.k + at);
        state.kv->encode(tokens.row(step.in[1], t), width, tokens.state + layer.v + at);
    }
}

void attend(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const uint32_t kv_heads = tokens.state_layout->spec.kv_heads;
    const Range range = piece(uint64_t(tokens.count) * kv_heads, part, parts);
    for (uint64_t i = range.begin; i < range.end; ++i)
        attend_group(step, tokens, uint32_t(i / kv_heads), uint32_t(i % kv_heads));
}

}  // namespace hf::host
