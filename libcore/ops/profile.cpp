#include "libcore/ops/profile.h"

#include <algorithm>

#include "libcore/ops/ops_table.h"

namespace hf {
namespace {

StepTimes key_of(const Step& step, const Tokens& tokens) {
    const bool is_matrix = row_of(step.op).place == Place::weight;
    return {.op = step.op,
            .lane = tokens.lane,
            .several_tokens = tokens.count > 1,
            .codec = is_matrix ? step.w->codec : nullptr,
            .shape = is_matrix ? step.w->shape : Shape{}};
}

bool same_key(const StepTimes& a, const StepTimes& b) {
    return a.op == b.op && a.lane == b.lane && a.several_tokens == b.several_tokens &&
           a.codec == b.codec && a.shape.rows == b.shape.rows && a.shape.cols == b.shape.cols;
}

}  // namespace

void StepProfile::add(const Step& step, const Tokens& tokens, double seconds,
                      double thread_seconds) {
    const StepTimes key = key_of(step, tokens);
    auto row = std::ranges::find_if(rows, [&](const StepTimes& r) { return same_key(r, key); });
    if (row == rows.end()) row = rows.insert(row, key);
    ++row->calls;
    row->bytes += row_of(step.op).bytes(step, tokens);
    row->seconds += seconds;
    row->thread_seconds += thread_seconds;
}

}  // namespace hf
