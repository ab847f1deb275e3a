#include "libcore/run/product_kinds.h"

#include <algorithm>

#include "cpuexec/isa.h"

namespace hf {
namespace {

/// Of the dot that serves `most`.
cpu::Level level_of_dot(const cpu::CpuOps& ops, cpu::Level most, cpu::Activations activations) {
    const cpu::Dot dot = cpu::pick_dot(ops, most, activations);
    size_t level = 0;
    while (level < size_t(most) && ops.dot[level][size_t(activations)] != dot) ++level;
    return cpu::Level(level);
}

}  // namespace

std::vector<ProductKind> product_kinds(const ModelPlan& plan, const DeviceInfo& info) {
    std::vector<ProductKind> kinds;
    for (const Step& step : plan.steps) {
        const bool is_processor = info.kind == "host" || (step.w && step.w->exec != Exec::device);
        if (!is_product(step.op) || !is_processor) continue;
        const cpu::Activations activations = step.params.activations;
        const cpu::Level level = level_of_dot(step.w->codec->cpu, info.level, activations);
        const auto same = [&](const ProductKind& k) {
            return k.activations == activations && k.level == level;
        };
        auto at = std::ranges::find_if(kinds, same);
        if (at == kinds.end()) at = kinds.insert(at, {activations, level, 0});
        at->bytes += step.w->bytes();
    }
    std::ranges::sort(kinds, std::ranges::greater{}, &ProductKind::bytes);
    return kinds;
}

std::string product_text(const std::vector<ProductKind>& kinds) {
    std::string text;
    for (const ProductKind& k : kinds) {
        if (!text.empty()) text += " and ";
        text += std::string(cpu::name(k.activations)) + "/" + std::string(cpu::name(k.level));
    }
    return text;
}

}  // namespace hf
