#include "libcore/ops/dispatches.h"

#include <algorithm>

#include "libcore/ops/ops_table.h"

namespace hf {
namespace {

/// A thread that is late, or slower than the others, costs at most a part at the end of a step: so
/// that share of a step may be lost. More and smaller parts would break up what is read in a row.
constexpr uint32_t kPartsPerThread = 16;

/// What a step, or several, use: a bit per slot and per layer's state. Some share a bit, which
/// costs a wait at worst.
struct Uses {
    uint64_t read = 0, written = 0, state = 0;

    static Uses of(const Step& step) {
        Uses uses;
        for (const Slot& slot : step.in) uses.read |= bit(slot);
        for (const Slot& slot : step.out) uses.written |= bit(slot);
        if (row_of(step.op).uses_state) uses.state = uint64_t(1) << step.params.state % 64;
        return uses;
    }
    static uint64_t bit(Slot slot) { return slot.exists() ? uint64_t(1) << slot.id % 64 : 0; }

    bool clash(const Uses& other) const {
        return (written & (other.read | other.written)) | (read & other.written) |
               (state & other.state);
    }
    void add(const Uses& other) {
        read |= other.read;
        written |= other.written;
        state |= other.state;
    }
};

uint32_t cut(const Step& step, const Tokens& tokens, unsigned threads) {
    if (threads == 1) return 1;
    return std::min(row_of(step.op).pieces(step, tokens), threads * kPartsPerThread);
}

}  // namespace

bool has_rows(const Step& step, const Tokens& tokens) {
    const Slot slot = step.out[0].exists() ? step.out[0] : step.in[0];
    return !slot.exists() || tokens.rows(slot) > 0;
}

uint32_t Dispatch::claims() const {
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i = end_of_claims(i)) sum += parts[i];
    return sum;
}

std::vector<Dispatch> plan_dispatches(std::span<const Step> steps, const Tokens& tokens,
                                      unsigned threads) {
    std::vector<Dispatch> plan;
    plan.reserve(steps.size());
    Uses together;
    for (const Step& step : steps) {
        if (!has_rows(step, tokens)) continue;
        const Uses uses = Uses::of(step);
        if (plan.empty() || plan.back().count == Dispatch::kMostSteps || uses.clash(together)) {
            plan.emplace_back();
            together = {};
        }
        Dispatch& last = plan.back();
        last.step[last.count] = &step;
        last.parts[last.count++] = cut(step, tokens, threads);
        together.add(uses);
    }
    return plan;
}

}  // namespace hf
