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
constexpr uint32_t kDecoded = 16;  // keys or values at a time, for all rows
constexpr size_t kAhead = 1024;    // bytes that are asked for before they are decoded
constexpr uint32_t kMaxRows = 64;  // query heads per key head; the config reader checks both
constexpr uint32_t kMaxHeadDim = 512;
constexpr uint32_t kRows = 32;  // that share a walk over the cache, if it takes several tokens

/// One key or value head of a layer's cache, as a matrix (max_seq, head_dim).
cpu::WeightView cache_head(const Tokens& tokens, uint64_t offset, uint32_t head) {
    const StateLayout& s = *tokens.state_layout;
    return {tokens.state + s.kv_row(offset, head, 0), s.max_seq, s.spec.head_dim, s.kv_head_bytes,
            nullptr};
}

/// Row t of a slot becomes the row of that token in a layer's keys or values.
void write_row(const Tokens& tokens, Slot slot, uint64_t t, uint64_t offset) {
    const StateLayout& s = *tokens.state_layout;
    const uint32_t dim = s.spec.head_dim;
    for (uint32_t h = 0; h < s.spec.kv_heads; ++h)
        s.kv->encode(tokens.row(slot, t) + h * dim, dim,
                     tokens.state + s.kv_row(offset, h, tokens.pos + t));
}

/// Asks for a row that is read a little later.
void ask_for(const std::byte* row, size_t bytes) {
    for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(row + line);
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
    const float* q[kMaxRows];
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
    const cpu::DecodeRow decode = cpu::pick_decode(state.kv->codec->cpu, tokens.level);
    const cpu::VectorMath& math = cpu::vector_math(tokens.level);
    const uint32_t dim = step.params.head_dim, group = step.params.heads / state.spec.kv_heads;
    const uint32_t rows_of_all = first_row(t1);

    void run() const {
        HF_ASSERT(rows_of_all <= kMaxRows && dim <= kMaxHeadDim);
        Rows rows;
        for (uint32_t r = 0; r < rows_of_all; ++r) {
            const uint32_t t = t0 + r / group, at = (m * group + r % group) * dim;
            rows.q[r] = tokens.row(step.in[0], t) + at;
            rows.out[r] = tokens.row(step.out[0], t) + at;
            std::fill_n(rows.out[r], dim, 0.0f);
        }
        for (uint32_t j0 = 0; j0 < tokens.pos + t1; j0 += kKeys) {
            for (uint32_t j = 0; j < kKeys; j += kDecoded) multiply_keys(rows, j0, j);
            for (uint32_t t = t0; t < t1; ++t) weigh_keys(rows, t, j0);
            for (uint32_t j = 0; j < kKeys; j += kDecoded) add_values(rows, j0, j);
        }
        for (uint32_t r = 0; r < rows_of_all; ++r)
            math.scale(rows.out[r], 1 / rows.softmax[r].sum, dim, rows.out[r]);
    }

    uint32_t first_row(uint32_t t) const { return (t - t0) * group; }

    /// How many of the `most` positions from j on token t may see.
    uint32_t seen(uint32_t t, uint32_t j, uint32_t most) const {
        const uint32_t length = tokens.pos + t + 1;
        return j < length ? std::min(most, length - j) : 0;
    }

    /// Rows from j on of the keys or values, kDecoded or as many as there are: how many.
    uint32_t read_rows(uint64_t offset, uint32_t j, float* out) const {
        const cpu::WeightView cache = cache_head(tokens, offset, m);
        const uint32_t n = seen(t1 - 1, j, kDecoded);
        for (uint32_t i = 0; i < n; ++i) {
            ask_for(cache.base + (j + i) * cache.row_bytes + kAhead, cache.row_bytes);
            decode(cache, j + i, out + i * dim);
        }
        return n;
    }

    /// Raw scores of all rows for kDecoded keys from j on in the block at j0; a token does not look
    /// at those of later ones.
    void multiply_keys(Rows& rows, uint32_t j0, uint32_t j) const {
        alignas(64) float keys[kDecoded * kMaxHeadDim];
        float* out[kMaxRows];
        for (uint32_t r = 0; r < rows_of_all; ++r) out[r] = rows.score[r] + j;
        math.multiply({.rows = rows_of_all,
                       .others = read_rows(layer.k, j0 + j, keys),
                       .cols = dim,
                       .x = rows.q,
                       .y = keys,
                       .stride = dim,
                       .out = out});
    }

    /// Turns scores of token t for the block of keys at j0 into weights.
    void weigh_keys(Rows& rows, uint32_t t, uint32_t j0) const {
        const uint32_t n = seen(t, j0, kKeys), first = first_row(t);
        if (n == 0) return;
        const float scale = 1.0f / std::sqrt(float(dim));
        for (uint32_t r = first; r < first + group; ++r)
            rows.softmax[r].take(math, rows.score[r], n, scale, rows.out[r], dim);
    }

    /// Adds kDecoded values from j on in the block at j0. Tokens that see as many of them go
    /// together.
    void add_values(Rows& rows, uint32_t j0, uint32_t j) const {
        alignas(64) float values[kDecoded * kMaxHeadDim];
        const float* weights[kMaxRows];
        if (read_rows(layer.v, j0 + j, values) == 0) return;
        for (uint32_t r = 0; r < rows_of_all; ++r) weights[r] = rows.score[r] + j;
        for (uint32_t t = t0, end; t < t1; t = end) {
            const uint32_t terms = seen(t, j0 + j, kDecoded), first = first_row(t);
            for (end = t + 1; end < t1 && seen(end, j0 + j, kDecoded) == terms;) ++end;
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
    const KvLayer& layer = tokens.state_layout->kv_layers[step.params.state];
    const Range rows = piece(tokens.count, part, parts);
    for (uint64_t t = rows.begin; t < rows.end; ++t) {
        write_row(tokens, step.in[0], t, layer.k);
        write_row(tokens, step.in[1], t, layer.v);
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
