#include "libcore/plan/lower_activations.h"

#include "cpuexec/activations.h"
#include "libcore/plan/derived_slots.h"

namespace hf {

std::vector<Step> lower_activations(std::span<const Step> steps, cpu::Activations wanted,
                                    SlotTable& slots) {
    StepList list;
    DerivedSlots<cpu::Prepare> prepared(slots);
    for (Step step : steps) {
        if (is_product(step))
            step.params.activations = cpu::pick_activations(step.w->codec->cpu, wanted);
        if (step.params.activations != cpu::Activations::f32) {
            const cpu::Prepare& how = step.w->codec->cpu.prepare;
            const size_t width = cpu::prepared_floats(how, wanted, step.in[0].width);
            const auto [to, is_new] = prepared.get(step.in[0], how, width, "_prepared");
            list.layer = step.layer;
            if (is_new) list.prepare(*step.w, wanted, step.in[0], to);
            step.in[0] = to;
        }
        list.steps.push_back(step);
        prepared.run(step);
    }
    return std::move(list.steps);
}

}  // namespace hf
