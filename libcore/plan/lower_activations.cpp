#include "libcore/plan/lower_activations.h"

#include <algorithm>

#include "cpuexec/activations.h"
#include "libcore/plan/derived_slots.h"

namespace hf {
namespace {

struct Pass {
    std::span<const Step> steps;
    cpu::Activations wanted;
    StepList list;
    DerivedSlots<cpu::Prepare> prepared;

    cpu::Activations activations_of(const Step& step) const {
        return is_product(step.op) ? cpu::pick_activations(step.w->codec->cpu, wanted)
                                   : cpu::Activations::f32;
    }

    /// The slot of a product's prepared input, which is made here unless it is there.
    Slot prepared_input(const Step& step) {
        const cpu::Prepare& how = step.w->codec->cpu.prepare;
        const size_t width = cpu::prepared_floats(how, wanted, step.in[0].width);
        const auto [to, is_new] = prepared.get(step.in[0], how, width, "_prepared");
        if (is_new) list.prepare(*step.w, wanted, step.in[0], to);
        return to;
    }

    /// What the products from step i on want of an input, up to the step that writes it: so these
    /// products remain neighbours, whatever their formats are.
    void prepare_all(size_t i) {
        const Slot in = steps[i].in[0];
        list.layer = steps[i].layer;
        for (; i < steps.size(); ++i) {
            const Step& step = steps[i];
            if (activations_of(step) != cpu::Activations::f32 && step.in[0] == in)
                prepared_input(step);
            if (std::ranges::find(step.out, in) != std::end(step.out)) return;
        }
    }

    void add(size_t i) {
        Step step = steps[i];
        step.params.activations = activations_of(step);
        if (step.params.activations != cpu::Activations::f32) {
            prepare_all(i);
            step.in[0] = prepared_input(step);
        }
        list.steps.push_back(step);
        prepared.run(step);
    }
};

}  // namespace

std::vector<Step> lower_activations(std::span<const Step> steps, cpu::Activations wanted,
                                    SlotTable& slots) {
    Pass pass{steps, wanted, {}, DerivedSlots<cpu::Prepare>(slots)};
    for (size_t i = 0; i < steps.size(); ++i) pass.add(i);
    return std::move(pass.list.steps);
}

}  // namespace hf
