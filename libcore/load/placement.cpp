#include "libcore/load/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "libcore/base/error.h"
#include "libcore/load/model.h"
#include "libcore/ops/ops_table.h"

namespace hf {
namespace {

bool has_dot(const Codec& codec) {
    for (const auto& level : codec.cpu.dot)
        if (std::ranges::any_of(level, [](cpu::Dot dot) { return dot != nullptr; })) return true;
    return false;
}

/// The feed-forward part of a layer, its norm included, is the end of the list of roles.
bool is_ffn(Role role) {
    return role >= Role::ffn_norm && role <= Role::ffn_down;
}

struct Placer {
    ModelPlan& plan;
    const DeviceInfo& info;
    const Budget& budget;
    const Layout& layout;

    bool is_spilled(const PlannedTensor& p) const {
        return p.layer != Step::kNoLayer && layout.layer_residency[p.layer] != Residency::device &&
               (budget.spill == Spill::layers || is_ffn(p.row->role));
    }

    /// Who multiplies, and the first row that is the CPU's.
    void choose_exec(Weight& w) const {
        const bool has_kernel = info.multiplies(*w.codec);
        uint64_t g = w.shape.rows;
        if (budget.exec == Exec::cpu) g = 0;
        if (budget.exec == Exec::split) {
            g = split_row(w.shape.rows, budget.split_share);
            if ((w.bytes() < budget.split_least_bytes && g < w.shape.rows) || !has_kernel) g = 0;
        }
        if (!is_covered(*w.codec)) g = w.shape.rows;
        w.exec = g == 0 ? Exec::cpu : g < w.shape.rows ? Exec::split : Exec::device;
        w.split_row = w.exec == Exec::split ? g : 0;
        const bool is_cpu_only = w.exec == Exec::cpu && (!budget.pin || !has_kernel);
        w.residency = is_cpu_only ? Residency::host_plain : Residency::host_mapped;
    }

    void place_one(const PlannedWeight& planned) const {
        Weight& w = *planned.weight;
        w.residency = Residency::device;
        w.exec = Exec::device;
        w.split_row = 0;
        w.is_mirrored = false;
        const PlannedTensor& p = planned.source;
        if (p.row->use != Use::matrix) return;
        if (p.row->role == Role::embedding && !plan.config.tied_embeddings && !info.in_place) {
            w.residency = Residency::host_plain;
            w.exec = Exec::cpu;
            w.is_mirrored = true;  // its sidecars; it has none as a rule
        } else if (is_spilled(p)) {
            choose_exec(w);
            w.is_mirrored = w.exec != Exec::device;
        }
    }

    /// A floating step of a layer whose matrices the CPU multiplies may run beside them.
    void mirror_what_floats() const {
        std::unordered_set<uint32_t> cpu_layers;
        std::unordered_set<const Weight*> of_ffn;
        for (const PlannedWeight& p : plan.weights) {
            if (p.source.layer != Step::kNoLayer && p.weight->exec != Exec::device)
                cpu_layers.insert(p.source.layer);
            if (is_ffn(p.source.row->role)) of_ffn.insert(p.weight.get());
        }
        std::unordered_set<const Weight*> read;
        for (const Step& step : plan.steps) {
            const bool is_beside = cpu_layers.contains(step.layer) &&
                                   row_of(step.op).place == Place::floating &&
                                   (budget.spill == Spill::layers || of_ffn.contains(step.w));
            if (is_beside) read.insert({step.w, step.aux});
        }
        for (const PlannedWeight& p : plan.weights)
            if (read.contains(p.weight.get())) p.weight->is_mirrored = true;
    }
};

void add_once(std::vector<std::string_view>& names, std::string_view name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

std::string split_line(uint32_t layers, uint32_t spilled, Spill spill) {
    if (spilled == 0)
        return fmt::format("  partial offload: 0 offloaded ({} resident), i_gpu_start=0", layers);
    return fmt::format("  partial offload: {} resident / {} offloaded, i_gpu_start={}{}",
                       layers - spilled, spilled, spilled,
                       spill == Spill::ffn ? " (feed-forward only)" : "");
}

}  // namespace

uint32_t Layout::spilled() const {
    return uint32_t(
        std::ranges::count_if(layer_residency, [](Residency r) { return r != Residency::device; }));
}

Layout lay_out_layers(uint32_t layers, uint32_t spilled) {
    HF_ASSERT(spilled <= layers);
    Layout layout{0, std::vector<uint32_t>(layers, 0), std::vector(layers, Residency::device)};
    std::fill_n(layout.layer_residency.begin(), spilled, Residency::host_mapped);
    return layout;
}

void check_layout(const Layout& layout, uint32_t layers, uint32_t devices) {
    if (layout.output_device >= devices)
        throw Error(
            fmt::format("the output is placed on device {}, but there are {} (0 is the "
                        "first)",
                        layout.output_device, devices));
    if (layout.layer_device.size() != layers || layout.layer_residency.size() != layers)
        throw Error(
            fmt::format("a layout has {} devices and {} residencies for the {} layers of "
                        "the model",
                        layout.layer_device.size(), layout.layer_residency.size(), layers));
    for (uint32_t layer = 0; layer < layers; ++layer)
        if (layout.layer_device[layer] >= devices)
            throw Error(
                fmt::format("layer {} is placed on device {}, but there are {} (0 is the "
                            "first)",
                            layer, layout.layer_device[layer], devices));
}

void place(ModelPlan& plan, const DeviceInfo& info, const Budget& budget, const Layout& layout) {
    check_layout(layout, plan.config.n_layers, 1);
    const Placer placer{plan, info, budget, layout};
    for (const PlannedWeight& p : plan.weights) placer.place_one(p);
    placer.mirror_what_floats();
    plan.budget = budget;
    plan.layout = layout;
}

bool is_covered(const Codec& codec) {
    return has_dot(codec) || codec.cpu.decode_row != nullptr;
}

Coverage coverage(const ModelPlan& plan) {
    Coverage found;
    std::set<uint32_t> spilled, uncovered;
    for (const PlannedWeight& p : plan.weights) {
        const Weight& w = *p.weight;
        if (p.source.layer == Step::kNoLayer || w.residency == Residency::device) continue;
        spilled.insert(p.source.layer);
        if (!is_covered(*w.codec)) {
            uncovered.insert(p.source.layer);
            found.uncovered_tensors += 1;
            add_once(found.uncovered_formats, w.codec->name);
        } else if (!has_dot(*w.codec)) {
            add_once(found.generic_formats, w.codec->name);
        }
    }
    std::ranges::sort(found.uncovered_formats);
    std::ranges::sort(found.generic_formats);
    found.spilled = uint32_t(spilled.size());
    found.covered = uint32_t(spilled.size() - uncovered.size());
    return found;
}

std::string coverage_line(const Coverage& c) {
    return fmt::format(
        "cpu exec: {}/{} spilled layers fully covered; uncovered quants: {}{}", c.covered,
        c.spilled,
        c.uncovered_formats.empty() ? "none"
                                    : fmt::format("{}", fmt::join(c.uncovered_formats, ", ")),
        c.generic_formats.empty()
            ? ""
            : fmt::format("; decoded row by row: {}", fmt::join(c.generic_formats, ", ")));
}

std::vector<std::string> split_lines(uint32_t layers, uint32_t spilled, const Budget& budget) {
    const std::string line = split_line(layers, spilled, budget.spill);
    switch (budget.layers) {
        case Budget::Layers::unset:
            if (spilled == 0) return {};
            return {
                "  partial offload: not everything fits, so as many layers stay as do "
                "(memory.gpu_layer_budget = auto)",
                line};
        case Budget::Layers::automatic:
            return {fmt::format("  partial offload: auto keeps {} of {} layers", layers - spilled,
                                layers),
                    line};
        case Budget::Layers::fixed:
            break;
    }
    if (budget.device_layers > layers)
        return {
            fmt::format("  partial offload: {} layers asked for, more than the {} of this "
                        "model; everything stays on the device",
                        budget.device_layers, layers)};
    return {line};
}

}  // namespace hf
