#include "libcore/ops/ops_table.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/ops/host_ops.h"

namespace hf {
namespace {

// Into how many pieces. A claim costs some 0.1 us, and a thread that joins a few us; a piece should
// be worth that, so small steps stay whole. ------------------------------------------------------

constexpr uint64_t kPieceBytes = 64 << 10;  // read by a product: 4 to 8 us
constexpr uint64_t kPieceValues = 8 << 10;  // through a pointwise op: 2 to 8 us

/// At most `most` pieces of at least `least` of the work each.
uint32_t pieces_of(uint64_t most, uint64_t work, uint64_t least) {
    return uint32_t(std::clamp<uint64_t>(std::min(most, work / least), 1, 1 << 20));
}

uint32_t per_row(const Step& s, const Tokens& t) {
    const uint64_t rows = t.rows(s.in[0]);
    return pieces_of(rows, rows * s.in[0].width, kPieceValues);
}
uint32_t per_token(const Step&, const Tokens& t) {
    return pieces_of(t.count, t.count, 1);
}
uint64_t product_bytes(const Step& s, const Tokens&);
uint32_t per_output(const Step& s, const Tokens& t) {
    return pieces_of((s.params.row_end - s.params.row_begin) / 4,
                     product_bytes(s, t) * t.rows(s.in[0]), kPieceBytes);
}
uint32_t per_head(const Step& s, const Tokens& t) {
    const uint64_t heads = uint64_t(t.rows(s.in[0])) * s.params.heads;
    return pieces_of(heads, heads * s.params.head_dim, kPieceValues);
}
uint32_t per_value(const Step& s, const Tokens& t) {
    const uint64_t values = uint64_t(t.rows(s.in[0])) * s.in[0].width;
    return pieces_of(values / 16, values, kPieceValues);
}
uint32_t per_prepared(const Step& s, const Tokens& t) {
    const uint64_t runs = (s.in[0].width + host::kPreparedCols - 1) / host::kPreparedCols;
    return pieces_of(t.rows(s.in[0]) * runs, t.rows(s.in[0]) * uint64_t(s.in[0].width),
                     kPieceValues);
}
uint64_t kv_rows_read(const Step&, const Tokens& t);
uint32_t per_kv_head(const Step& s, const Tokens& t) {
    return pieces_of(uint64_t(t.count) * t.state_layout->spec.kv_heads, kv_rows_read(s, t),
                     kPieceBytes);
}
uint32_t per_key_head(const Step&, const Tokens& t) {
    const StateSpec& spec = t.state_layout->spec;
    const uint64_t heads = uint64_t(t.count) * spec.key_heads;
    return pieces_of(heads, 2 * heads * spec.key_dim, kPieceValues);
}
uint32_t per_value_head(const Step&, const Tokens& t) {
    return pieces_of(t.state_layout->spec.value_heads, UINT32_MAX, 1);
}
uint32_t per_channels(const Step&, const Tokens& t) {
    const uint64_t channels = t.state_layout->spec.channels();
    return pieces_of(channels / 16, t.count * channels, kPieceValues / 8);
}

// How many bytes of weights and state. ---------------------------------------------------------

uint64_t no_bytes(const Step&, const Tokens&) {
    return 0;
}
uint64_t weight_bytes(const Step& s, const Tokens&) {
    return s.w->bytes();
}
uint64_t product_bytes(const Step& s, const Tokens&) {
    const uint64_t rows = s.params.row_end - s.params.row_begin;
    return rows == s.w->shape.rows ? s.w->bytes() : rows * s.w->codec->row_bytes(s.w->shape.cols);
}
uint64_t embedding_bytes(const Step& s, const Tokens& t) {
    return t.count * s.w->codec->row_bytes(s.w->shape.cols);
}
uint64_t kv_rows_written(const Step&, const Tokens& t) {
    return 2ull * t.count * t.state_layout->kv_row_bytes;
}
/// A pass reads the cache once per token: row i of the pass sees pos + i + 1 keys and values.
uint64_t kv_rows_read(const Step&, const Tokens& t) {
    const uint64_t keys = uint64_t(t.count) * t.pos + uint64_t(t.count) * (t.count + 1) / 2;
    return 2 * keys * t.state_layout->kv_row_bytes;
}
uint64_t recurrent_bytes(const StateSpec& s) {
    return uint64_t(s.value_heads) * s.key_dim * s.value_dim * sizeof(float);
}
uint64_t s_read(const Step&, const Tokens& t) {
    return (t.commits > 0 ? 2 : 1) * recurrent_bytes(t.state_layout->spec);
}
uint64_t s_updated(const Step&, const Tokens& t) {
    return 2 * recurrent_bytes(t.state_layout->spec);
}

// clang-format off
constexpr OpRow kOps[] = {
    // op               name              place            state  pieces          bytes            host
    {Op::embed,         "embed",          Place::weight,   false, per_token,      embedding_bytes, host::embed},
    {Op::take_rows,     "take_rows",      Place::floating, false, per_row,        no_bytes,        host::take_rows},
    {Op::copy,          "copy",           Place::floating, false, per_row,        no_bytes,        host::copy},
    {Op::rmsnorm,       "rmsnorm",        Place::floating, false, per_row,        weight_bytes,    host::rmsnorm},
    {Op::gemv,          "gemv",           Place::weight,   false, per_output,     product_bytes,   host::gemv},
    {Op::gemv_residual, "gemv_residual",  Place::weight,   false, per_output,     product_bytes,   host::gemv_residual},
    {Op::add_bias,      "add_bias",       Place::floating, false, per_row,        weight_bytes,    host::add_bias},
    {Op::rotate,        "rotate",         Place::floating, false, per_row,        no_bytes,        host::rotate},
    {Op::prepare,       "prepare",        Place::floating, false, per_prepared,   no_bytes,        host::prepare},
    {Op::head_norm,     "head_norm",      Place::floating, false, per_head,       weight_bytes,    host::head_norm},
    {Op::rope,          "rope",           Place::floating, false, per_row,        no_bytes,        host::rope},
    {Op::kv_write,      "kv_write",       Place::state,    true,  per_token,      kv_rows_written, host::kv_write},
    {Op::attend,        "attend",         Place::state,    true,  per_kv_head,    kv_rows_read,    host::attend},
    {Op::output_gate,   "output_gate",    Place::floating, false, per_head,       no_bytes,        host::output_gate},
    {Op::conv_silu,     "conv_silu",      Place::state,    true,  per_channels,   weight_bytes,    host::conv_silu},
    {Op::delta_norm_qk, "delta_norm_qk",  Place::state,    false, per_key_head,   no_bytes,        host::delta_norm_qk},
    {Op::delta_gates,   "delta_gates",    Place::state,    false, per_token,      no_bytes,        host::delta_gates},
    {Op::delta_rule,    "delta_rule",     Place::state,    true,  per_value_head, s_read,          host::delta_rule},
    {Op::delta_keep,    "delta_keep",     Place::state,    true,  per_row,        no_bytes,        host::delta_keep},
    {Op::gated_norm,    "gated_norm",     Place::state,    false, per_head,       weight_bytes,    host::gated_norm},
    {Op::silu_mul,      "silu_mul",       Place::floating, false, per_value,      no_bytes,        host::silu_mul},
    {Op::conv_commit,   "conv_commit",    Place::state,    true,  per_channels,   no_bytes,        host::conv_commit},
    {Op::delta_commit,  "delta_commit",   Place::state,    true,  per_value_head, s_updated,       host::delta_commit},
};
// clang-format on

constexpr bool in_enum_order() {
    for (size_t i = 0; i < std::size(kOps); ++i)
        if (kOps[i].op != Op(i)) return false;
    return std::size(kOps) == size_t(Op::count_);
}
static_assert(in_enum_order(), "one row per op, in the order of the enum");

}  // namespace

std::span<const OpRow> ops_table() {
    return kOps;
}

const OpRow& row_of(Op op) {
    HF_ASSERT(op < Op::count_);
    return kOps[size_t(op)];
}

}  // namespace hf
