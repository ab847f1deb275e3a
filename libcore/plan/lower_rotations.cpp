#include "libcore/plan/lower_rotations.h"

#include "libcore/plan/derived_slots.h"

namespace hf {
namespace {

/// What the format of a step's weight asks of its input.
struct Turn {
    Rotation rotation;
    uint32_t awq_id, width;
    bool operator==(const Turn&) const = default;
};

Turn turn_of(const Step& step) {
    return {step.w->codec->rotation, step.w->awq_id,
            uint32_t(activation_cols(*step.w->codec, step.w->shape.cols))};
}

}  // namespace

std::vector<Step> lower_rotations(std::span<const Step> steps, SlotTable& slots) {
    StepList list;
    DerivedSlots<Turn> rotated(slots);
    for (Step step : steps) {
        if (is_product(step.op) && step.w->codec->rotation != Rotation::none) {
            const Turn turn = turn_of(step);
            const auto [to, is_new] = rotated.get(step.in[0], turn, turn.width, "_rotated");
            list.layer = step.layer;
            if (is_new) list.rotate(*step.w, step.in[0], to);
            step.in[0] = to;
        }
        list.steps.push_back(step);
        rotated.run(step);
    }
    return std::move(list.steps);
}

}  // namespace hf
