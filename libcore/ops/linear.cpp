// Matrix products and embedding rows: what reads matrices.
#include <algorithm>

#include "cpuexec/activations.h"
#include "cpuexec/fwht.h"
#include "libcore/base/error.h"
#include "libcore/codec/decode.h"
#include "libcore/ops/host_ops.h"

namespace hf::host {
namespace {

/// y[t * y_stride + r - r0] = w[r] . in[t] for rows [r0, r1).
void dot_rows(const Step& step, const Tokens& tokens, uint64_t r0, uint64_t r1, float* y,
              size_t y_stride) {
    const Slot in = step.in[0];
    const cpu::Columns x{tokens.row(in, 0), in.width, tokens.rows(in)};
    const cpu::Dot dot = cpu::pick_dot(step.w->codec->cpu, tokens.level, step.params.activations);
    dot(step.w->view(tokens.lane), r0, r1, x, y, y_stride);
}

/// This piece's share of the rows that the step computes: whole groups of the rows that the dots of
/// few columns take at a time, or of those that many columns are worth.
Range rows_of_piece(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const uint64_t first = step.params.row_begin,
                   group = tokens.rows(step.in[0]) < cpu::kManyColumns ? 4 : cpu::kManyRows;
    const Range r = piece(step.params.row_end - first, part, parts, group);
    return {first + r.begin, first + r.end};
}

}  // namespace

/// A row is wanted as it was before AWQ scaled its columns and the format rotated it. A table in
/// plain host memory is read by the host, whichever lane's arena it writes.
void embed(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const Weight& w = *step.w;
    const Lane lane = w.residency == Residency::host_plain ? Lane::cpu : tokens.lane;
    const cpu::WeightView table = w.view(lane);
    const size_t cols = w.shape.cols;
    const Range range = piece(tokens.count, part, parts);
    for (uint64_t t = range.begin; t < range.end; ++t) {
        float* row = tokens.row(step.out[0], t);
        decode_original(*w.codec, table, size_t(tokens.ids[t]), {row, cols});
        if (w.awq_id) cpu::divide(row, w.awq_scale.values(lane), cols, row);
    }
}

void gemv(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const Slot out = step.out[0];
    const Range rows = rows_of_piece(step, tokens, part, parts);
    if (rows.begin < rows.end)
        dot_rows(step, tokens, rows.begin, rows.end, tokens.row(out, 0) + rows.begin, out.width);
}

/// The product is formed completely before the residual is added, in blocks that stay in cache.
void gemv_residual(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    constexpr uint64_t kBlock = cpu::kManyRows;
    constexpr uint32_t kMaxCount = 64;  // columns; a pass has no more
    HF_ASSERT(tokens.count <= kMaxCount);
    float product[kMaxCount * kBlock];
    const Slot out = step.out[0];
    const Range rows = rows_of_piece(step, tokens, part, parts);
    for (uint64_t r0 = rows.begin; r0 < rows.end; r0 += kBlock) {
        const uint64_t n = std::min(kBlock, rows.end - r0);
        dot_rows(step, tokens, r0, r0 + n, product, kBlock);
        for (uint32_t t = 0; t < tokens.rows(out); ++t) {
            float* x = tokens.row(out, t) + r0;
            for (uint64_t r = 0; r < n; ++r) x[r] += product[t * kBlock + r];
        }
    }
}

/// Divide, then rotate; columns that the format pads are zero before the rotation.
void rotate(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const Weight& w = *step.w;
    const uint32_t cols = step.in[0].width, padded = step.out[0].width;
    const Range rows = piece(tokens.rows(step.in[0]), part, parts);
    for (uint64_t t = rows.begin; t < rows.end; ++t) {
        const float* in = tokens.row(step.in[0], t);
        float* out = tokens.row(step.out[0], t);
        if (w.awq_id)
            cpu::divide(in, w.awq_scale.values(tokens.lane), cols, out);
        else
            std::copy_n(in, cols, out);
        std::fill(out + cols, out + padded, 0.0f);
        cpu::rotate(tokens.level, rotation_block(w.codec->rotation), out, padded, out);
    }
}

/// A row is cut into runs of whole units.
void prepare(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts) {
    const cpu::Prepare& how = step.w->codec->cpu.prepare;
    const cpu::Activations a = step.params.activations;
    const uint64_t cols = step.in[0].width;
    const uint64_t runs = (cols + kPreparedCols - 1) / kPreparedCols;
    const Range range = piece(tokens.rows(step.in[0]) * runs, part, parts);
    for (uint64_t i = range.begin; i < range.end; ++i) {
        const uint64_t t = i / runs, first = i % runs * kPreparedCols;
        cpu::prepare(tokens.level, how, a, tokens.row(step.in[0], t) + first,
                     std::min(kPreparedCols, cols - first),
                     tokens.row(step.out[0], t) + cpu::prepared_floats(how, a, first));
    }
}

}  // namespace hf::host
