#include "libcore/ops/run_steps.h"

#include <algorithm>

#include "libcore/ops/ops_table.h"

namespace hf {
namespace {

/// Pieces per thread: enough that a thread which was interrupted leaves little behind.
constexpr uint32_t kPiecesPerThread = 4;

uint32_t cut(const OpRow& row, const Step& step, const Tokens& tokens, unsigned threads) {
    if (!has_rows(step, tokens)) return 0;
    return threads == 1 ? 1 : std::min(row.pieces(step, tokens), threads * kPiecesPerThread);
}

}  // namespace

bool has_rows(const Step& step, const Tokens& tokens) {
    const Slot slot = step.out[0].exists() ? step.out[0] : step.in[0];
    return !slot.exists() || tokens.rows(slot) > 0;
}

void run_steps(std::span<const Step> steps, const Tokens& tokens, cpu::ThreadPool& pool) {
    uint32_t parts = 0;
    pool.run(
        uint32_t(steps.size()),
        [&](uint32_t s) {
            return parts = cut(row_of(steps[s].op), steps[s], tokens, pool.size());
        },
        [&](uint32_t s, uint32_t part, unsigned) {
            row_of(steps[s].op).host(steps[s], tokens, part, parts);
        });
}

uint64_t bytes_moved(std::span<const Step> steps, const Tokens& tokens) {
    uint64_t bytes = 0;
    for (const Step& step : steps)
        if (has_rows(step, tokens)) bytes += row_of(step.op).bytes(step, tokens);
    return bytes;
}

}  // namespace hf
