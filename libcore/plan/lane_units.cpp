#include "libcore/plan/lane_units.h"

#include <algorithm>
#include <map>

#include "libcore/base/error.h"
#include "libcore/ops/ops_table.h"

namespace hf {
namespace {

SlotCopy whole(Slot slot) {
    return {slot, 0, slot.width};
}

Place place_of(const Step& step) {
    return row_of(step.op).place;
}

/// Whether the CPU has the vectors that a floating step reads. (A rotation reads a matrix's scale,
/// a preparation nothing of it.)
bool cpu_has_vectors(const Step& step) {
    const auto has = [](const Weight* w) { return !w || w->is_mirrored; };
    if (step.op == Op::prepare || (step.op == Op::rotate && step.w->awq_id == 0)) return true;
    return has(step.w) && has(step.aux);
}

bool may_run_on_cpu(const Step& step, TokenClass c) {
    if (place_of(step) == Place::weight) return side_of(*step.w, c) == Exec::cpu;
    return place_of(step) == Place::floating && cpu_has_vectors(step);
}

bool may_run_on_device(const Step& step, TokenClass c) {
    return place_of(step) != Place::weight || side_of(*step.w, c) == Exec::device;
}

LaneUnit unit_of(const Step& step, TokenClass c) {
    LaneUnit unit;
    unit.is_floating = place_of(step) == Place::floating;
    if (may_run_on_cpu(step, c)) unit.steps[size_t(Lane::cpu)] = {step};
    if (may_run_on_device(step, c)) unit.steps[size_t(Lane::device)] = {step};
    for (size_t lane = 0; lane < kLanes; ++lane) {
        for (const Slot& slot : step.in)
            if (slot.exists()) unit.reads[lane].push_back(whole(slot));
        if (step.op == Op::copy)  // keeps the columns around it
            unit.reads[lane].push_back(whole(step.out[0]));
        for (const Slot& slot : step.out)
            if (slot.exists()) unit.writes[lane].push_back(slot);
    }
    return unit;
}

bool has(const Slot (&slots)[4], Slot slot) {
    return std::ranges::find(slots, slot) != std::end(slots);
}

/// Neither reads nor writes what the other writes.
bool are_independent(const Step& a, const Step& b) {
    return !has(a.in, b.out[0]) && !has(b.in, a.out[0]) && a.out[0] != b.out[0];
}

/// How many steps from here on make a window; 0 when none of them is cut.
size_t window_length(std::span<const Step> steps, TokenClass c) {
    const auto fits = [&](size_t n) {
        return is_product(steps[n].op) && side_of(*steps[n].w, c) != Exec::device &&
               std::ranges::all_of(steps.first(n),
                                   [&](const Step& s) { return are_independent(s, steps[n]); });
    };
    size_t n = 0;
    while (n < steps.size() && fits(n)) ++n;
    const bool is_cut = std::ranges::any_of(
        steps.first(n), [&](const Step& s) { return side_of(*s.w, c) == Exec::split; });
    return is_cut ? n : 0;
}

/// Slots whose last writer was cut: the CPU has its own columns, from `cut` on.
using CutSlots = std::map<uint16_t, uint32_t>;

/// Makes the unit of a window.
struct WindowMaker {
    TokenClass token_class;
    const CutSlots& cut_before;
    LaneUnit unit;

    /// A lane computes rows [begin, end). Of a residual it reads only those.
    void add_part(Lane on, Step step, uint32_t begin, uint32_t end) {
        step.params.row_begin = begin;
        step.params.row_end = end;
        unit.steps[size_t(on)].push_back(step);
        unit.reads[size_t(on)].push_back(whole(step.in[0]));
        if (step.op != Op::gemv_residual) return;
        const auto cut = cut_before.find(step.out[0].id);
        const bool is_there = on == Lane::cpu && cut != cut_before.end() && cut->second <= begin;
        if (!is_there) unit.reads[size_t(on)].push_back({step.out[0], begin, end});
    }

    void add(const Step& step) {
        const uint32_t rows = step.params.row_end, cut = uint32_t(step.w->split_row);
        if (side_of(*step.w, token_class) == Exec::cpu) {
            add_part(Lane::cpu, step, 0, rows);
            unit.writes[size_t(Lane::cpu)].push_back(step.out[0]);
            return;
        }
        HF_ASSERT(0 < cut && cut < rows);
        add_part(Lane::device, step, 0, cut);
        add_part(Lane::cpu, step, cut, rows);
        unit.writes[size_t(Lane::device)].push_back(step.out[0]);
        unit.cut_outputs.push_back({step.out[0], cut, rows});
    }
};

LaneUnit window_of(std::span<const Step> steps, TokenClass c, const CutSlots& cut_before) {
    WindowMaker maker{c, cut_before, {}};
    maker.unit.is_window = true;
    for (const Step& step : steps) maker.add(step);
    return std::move(maker.unit);
}

void note_writes(const LaneUnit& unit, CutSlots& cut) {
    for (const auto& writes : unit.writes)
        for (const Slot& slot : writes) cut.erase(slot.id);
    for (const SlotCopy& c : unit.cut_outputs) cut[c.slot.id] = c.begin;
}

}  // namespace

std::vector<LaneUnit> lane_units(std::span<const Step> steps, TokenClass token_class) {
    std::vector<LaneUnit> units;
    CutSlots cut;
    while (!steps.empty()) {
        const size_t n = window_length(steps, token_class);
        units.push_back(n > 0 ? window_of(steps.first(n), token_class, cut)
                              : unit_of(steps.front(), token_class));
        note_writes(units.back(), cut);
        steps = steps.subspan(std::max<size_t>(n, 1));
    }
    return units;
}

}  // namespace hf
