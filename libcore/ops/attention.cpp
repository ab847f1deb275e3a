// Attention over the key/value cache.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpuexec/vector_math.h"
#include "libcore/base/error.h"
#include "libcore/ops/host_ops.h"

namespace hf::host {
namespace {

constexpr uint32_t kKeys = 64;     // at a time, on the absolute grid
constexpr uint32_t kValues = 16;   // decoded at a time, for all rows
constexpr uint32_t kMaxRows = 64;  // query heads per key head; the config reader checks both
constexpr uint32_t kMaxHeadDim = 512;
constexpr uint32_t kRows = 32;  // that share a walk over the cache, if it takes several tokens

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

    /// Turns n raw scores into weights and rescales what was summed so far.
    void take(const cpu::VectorMath& math, float* score, size_t n, float scale, float* out,
              size_t dim) {
        const float top = std::max(largest, scale * math.largest(score, n));
        float rescale;  // exp(-infinity) = 0 at first
        math.exp_shifted(&largest, 1, top, 1, &rescale);
        math.exp_shifted(score, scale, top, n, score);
        sum = sum * rescale + math.sum(score, n);
        if (rescale != 1) math.scale(out, rescale, dim, out);
        largest = top;
    }
};

/// Query heads that share the keys and values of a walk: `group` rows for each token.
struct Rows {
    RunningSoftmax softmax[kMaxRows];
    float score[kMaxRows][kKeys];
    float* out[kMaxRows];  // sums of values so far
};

/// What tokens [t0, t1) of a pass read of key head m. Each row's sums are those it would have
/// alone.
struct Walk {
    const Step& step;
    const Tokens& tokens;
    const uint32_t m, t0, t1;

    const StateLayout& state = *tokens.state_layout;
    const KvLayer& layer = state.kv_layers[step.params.state];
    const cpu::CpuOps& codec = state.kv->codec->cpu;
    const cpu::VectorMath& math = cpu::vector_math(tokens.level);
    const uint32_t dim = step.params.head_dim, group = step.params.heads / state.spec.kv_heads;

    void run() const {
        HF_ASSERT((t1 - t0) * group <= kMaxRows && dim <= kMaxHeadDim);
        Rows rows;
        for (uint32_t t = t0; t < t1; ++t)
            for (uint32_t h = 0; h < group; ++h) {
                float* out = tokens.row(step.out[0], t) + (m * group + h) * dim;
                std::fill_n(out, dim, 0.0f);
                rows.out[first_row(t) + h] = out;
            }
        for (uint32_t j0 = 0; j0 < tokens.pos + t1; j0 += kKeys) {
            for (uint32_t t = t0; t < t1; ++t) weigh_keys(rows, t, j0);
            for (uint32_t j = j0; j < j0 + kKeys; j += kValues) add_values(rows, j0, j);
        }
        for (uint32_t r = 0; r < first_row(t1); ++r)
            math.scale(rows.out[r], 1 / rows.softmax[r].sum, dim, rows.out[r]);
    }

    uint32_t first_row(uint32_t t) const { return (t - t0) * group; }

    /// How many of the `most` positions from j on token t may see.
    uint32_t seen(uint32_t t, uint32_t j, uint32_t most) const {
        const uint32_t length = tokens.pos + t + 1;
        return j < length ? std::min(most, length - j) : 0;
    }

    /// Scores of token t for the block of keys at j0, as weights.
    void weigh_keys(Rows& rows, uint32_t t, uint32_t j0) const {
        const uint32_t n = seen(t, j0, kKeys), first = first_row(t);
        if (n == 0) return;
        const cpu::Columns q{tokens.row(step.in[0], t) + m * group * dim, dim, group};
        const cpu::WeightView keys = cache_head(tokens, layer.k, m);
        cpu::pick_dot(codec, tokens.level, cpu::Activations::f32)(keys, j0, j0 + n, q,
                                                                  rows.score[first], kKeys);
        const float scale = 1.0f / std::sqrt(float(dim));
        for (uint32_t r = first; r < first + group; ++r)
            rows.softmax[r].take(math, rows.score[r], n, scale, rows.out[r], dim);
    }

    /// Adds kValues values from j on, j0 being their block of keys. Tokens that see as many of them
    /// go together.
    void add_values(Rows& rows, uint32_t j0, uint32_t j) const {
        float values[kValues * kMaxHeadDim];
        const float* weights[kMaxRows];
        const cpu::WeightView cache = cache_head(tokens, layer.v, m);
        for (uint32_t i = 0; i < seen(t1 - 1, j, kValues); ++i)
            cpu::pick_decode(codec, tokens.level)(cache, j + i, values + i * dim);
        for (uint32_t r = 0; r < first_row(t1); ++r) weights[r] = rows.score[r] + (j - j0);
        for (uint32_t t = t0, end; t < t1; t = end) {
            const uint32_t terms = seen(t, j, kValues), first = first_row(t);
            for (end = t + 1; end < t1 && seen(end, j, kValues) == terms;) ++end;
            math.add_weighted({.rows = (end - t) * group,
                               .terms = terms,
                               .cols = dim,
                               .weights = weights + first,
                               .values = values,
                               .stride = dim,
                               .out = rows.out + first});
        }
    }
};

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

/// Pieces are of (key head, token), the tokens of a head one after another.
void attend(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const uint32_t kv_heads = tokens.state_layout->spec.kv_heads, n = tokens.count;
    const uint32_t together = std::max(1u, kRows / (step.params.heads / kv_heads));
    const Range range = piece(uint64_t(n) * kv_heads, part, parts);
    for (uint64_t i = range.begin, end; i < range.end; i = end) {
        const uint64_t first = i / n * n;  // of this head
        end = std::min({i + together, first + n, range.end});
        Walk{step, tokens, uint32_t(i / n), uint32_t(i - first), uint32_t(end - first)}.run();
    }
}

}  // namespace hf::host
