#include "libcore/plan/lower_rotations.h"

#include <algorithm>

namespace hf {
namespace {

bool needs_rotation(const Step& step) {
    return (step.op == Op::gemv || step.op == Op::gemv_residual) &&
           step.w->codec->rotation != Rotation::none;
}

/// An activation that was rotated, and for which kind of weight.
struct Rotated {
    Slot from, to;
    Rotation rotation;
    uint32_t awq_id;
    bool is_current;  // `from` was not written since

    bool serves(const Step& step) const {
        return is_current && from == step.in[0] && rotation == step.w->codec->rotation &&
               awq_id == step.w->awq_id && to.width == width_for(step);
    }
    static uint32_t width_for(const Step& step) {
        return uint32_t(activation_cols(*step.w->codec, step.w->shape.cols));
    }
};

struct Pass {
    SlotTable& slots;
    StepList list;
    std::vector<Rotated> rotated;

    /// A slot for the rotated input of a step: one whose activation is no longer current, or new.
    Slot slot_for(const Step& step) {
        const uint32_t width = Rotated::width_for(step);
        for (Rotated& r : rotated)
            if (!r.is_current && r.to.width == width && r.to.rows == step.in[0].rows) {
                const Slot free = r.to;
                rotated.erase(rotated.begin() + (&r - rotated.data()));
                return free;
            }
        return slots.add(slots.names[step.in[0].id] + "_rotated", width, step.in[0].rows);
    }

    Slot rotated_input(const Step& step) {
        for (const Rotated& r : rotated)
            if (r.serves(step)) return r.to;
        const Slot to = slot_for(step);
        list.layer = step.layer;
        list.rotate(*step.w, step.in[0], to);
        rotated.push_back({step.in[0], to, step.w->codec->rotation, step.w->awq_id, true});
        return to;
    }

    void add(Step step) {
        if (needs_rotation(step)) step.in[0] = rotated_input(step);
        list.steps.push_back(step);
        for (Rotated& r : rotated)
            r.is_current &= std::ranges::find(step.out, r.from) == std::end(step.out);
    }
};

}  // namespace

std::vector<Step> lower_rotations(std::span<const Step> steps, SlotTable& slots) {
    Pass pass{slots, {}, {}};
    for (const Step& step : steps) pass.add(step);
    return std::move(pass.list.steps);
}

}  // namespace hf
