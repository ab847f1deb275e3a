#include "libcore/run/refuse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "libcore/arch/config_fields.h"

namespace hf {
namespace {

using Judgement = std::optional<Reason>;

constexpr const char* kKeepAll = "unset memory.gpu_layer_budget, so that every layer stays";

std::string budget_text(const Budget& budget) {
    switch (budget.layers) {
        case Budget::Layers::unset:
            return "unset";
        case Budget::Layers::automatic:
            return "auto";
        case Budget::Layers::fixed:
            break;
    }
    return std::to_string(budget.device_layers);
}

std::string cannot_honour(const ModelPlan& plan, std::string_view why) {
    return fmt::format("gpu_layer_budget={} cannot be honoured: {}", budget_text(plan.budget), why);
}

template <class F>
uint32_t count_matrices(const ModelPlan& plan, F is_counted) {
    return uint32_t(std::ranges::count_if(plan.weights, [&](const PlannedWeight& p) {
        return p.source.row->use == Use::matrix && is_counted(p);
    }));
}

/// Matrices of layers that the CPU multiplies, wholly or in part. The embedding table is none.
uint32_t cpu_matrices(const ModelPlan& plan) {
    return count_matrices(plan, [](const PlannedWeight& p) {
        return p.source.layer != Step::kNoLayer && p.weight->exec != Exec::device;
    });
}

uint32_t mapped_matrices(const ModelPlan& plan) {
    return count_matrices(
        plan, [](const PlannedWeight& p) { return p.weight->residency == Residency::host_mapped; });
}

Judgement judge_speculation(const Asked& a) {
    const std::string& mode = a.config.speculation.mode;
    if (mode == "off" || mode == "auto") return {};
    std::string_view why = "is not built in";
    if (mode == "dflash") why = "needs a draft model, and draft models are not supported";
    if (mode == "mtp" && a.plan.layout.spilled() > 0)
        why = "verifies in batches, which offloaded layers do not cover";
    return Reason{fmt::format("speculation.mode={} {}", mode, why), "set speculation.mode = off"};
}

/// A tape with the CPU's steps missing is worse than none, so that is said first.
Judgement judge_replay(const Asked& a) {
    const std::string& backend = a.config.replay.backend;
    if (backend == "hip") return {};
    if (cpu_matrices(a.plan) > 0)
        return Reason{fmt::format("offload_exec={} with replay.backend={}: a recorded tape skips "
                                  "CPU steps and replays stale activations",
                                  name_of(a.plan.budget.exec), backend),
                      "set memory.offload_exec = pcie, or replay.backend = hip"};
    return Reason{fmt::format("replay.backend={} is not built in", backend),
                  "set replay.backend = hip"};
}

/// Rotations by Givens need sidecars that only a card's kernels read.
bool is_paro(const ModelFile& file) {
    const auto named_paro = [](const TensorView& t) { return t.dtype.starts_with("PARO"); };
    if (std::ranges::any_of(file.tensors, named_paro)) return true;
    if (file.naming == Naming::gguf) return false;
    return ConfigFields(config_label(file), file.config)
        .text("quantization_config.quant_method", "")
        .starts_with("paro");
}

uint32_t experts_of(const ModelFile& file) {
    constexpr uint32_t kMost = 1 << 20;
    if (file.naming == Naming::gguf)
        return file.gguf.uint(file.gguf.text("general.architecture", "") + ".expert_count", 0,
                              kMost, 0);
    const ConfigFields config(config_label(file), file.config);
    uint32_t experts = 0;
    for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"})
        experts = std::max(experts, config.uint(key, 0, kMost, 0));
    return experts;
}

Judgement judge_paro(const Asked& a) {
    if (!is_paro(*a.plan.file)) return {};
    return Reason{cannot_honour(a.plan, "source is PARO (rotation sidecars stay in VRAM)"),
                  kKeepAll};
}

Judgement judge_experts(const Asked& a) {
    const uint32_t experts = experts_of(*a.plan.file);
    if (experts == 0) return {};
    return Reason{cannot_honour(a.plan, fmt::format("model has {} experts; expert tensors are not "
                                                    "spillable",
                                                    experts)),
                  kKeepAll};
}

Judgement judge_architecture(const Asked& a) {
    if (a.plan.arch->may_spill) return {};
    return Reason{cannot_honour(a.plan, fmt::format("layers of architecture {} are not spillable",
                                                    a.plan.arch->name)),
                  kKeepAll};
}

/// A processor that reads the mapped file has no memory of its own that layers could leave.
Judgement judge_card(const Asked& a) {
    if (!a.device.in_place) return {};
    return Reason{fmt::format("gpu_layer_budget={}, but there is no graphics card: {} reads all "
                              "layers in the mapped file",
                              budget_text(a.plan.budget), a.device.name),
                  "unset memory.gpu_layer_budget (--gpu-layers), or let the processor play a card: "
                  "device.vram_mb = 8192 (--vram-mb 8192)"};
}

/// What the runtime says counts; the names are those of cards known to have no memory of their own.
Judgement judge_unified(const Asked& a) {
    constexpr std::string_view kUnified[] = {"gfx1035", "gfx1036", "gfx1103",
                                             "gfx1150", "gfx1151", "gfx1152"};
    const auto named = [&](std::string_view arch) {
        return a.device.name.find(arch) != std::string::npos;
    };
    if (!a.device.unified && std::ranges::none_of(kUnified, named)) return {};
    return Reason{
        fmt::format("gpu_layer_budget={} on unified-memory device {} ({}): spilling "
                    "frees no VRAM",
                    budget_text(a.plan.budget), a.plan.layout.output_device, a.device.name),
        kKeepAll};
}

Judgement judge_mapping(const Asked& a) {
    const uint32_t mapped = mapped_matrices(a.plan);
    if (a.device.can_map_host || mapped == 0) return {};
    return Reason{fmt::format("gpu_layer_budget={}: {} spilled tensors would be mapped for the "
                              "device, but {} cannot read host memory",
                              budget_text(a.plan.budget), mapped, a.device.name),
                  "set memory.offload_exec = cpu with memory.pin = false, or keep all layers on "
                  "the device"};
}

Judgement judge_pin(const Asked& a) {
    const uint32_t mapped = mapped_matrices(a.plan);
    if (a.plan.budget.pin || mapped == 0) return {};
    return Reason{fmt::format("memory.pin=false with offload_exec={}: {} spilled tensors are read "
                              "by the device, which needs them pinned",
                              name_of(a.plan.budget.exec), mapped),
                  "set memory.offload_exec = cpu, or memory.pin = true"};
}

Judgement judge_graph(const Asked& a) {
    const uint32_t on_cpu = cpu_matrices(a.plan);
    if (a.config.graph.forward != true || on_cpu == 0) return {};
    return Reason{fmt::format("offload_exec={} with experimental.graph.forward=true: {} "
                              "CPU-executed weights present",
                              name_of(a.plan.budget.exec), on_cpu),
                  "set experimental.graph.forward = auto, or memory.offload_exec = pcie"};
}

Judgement judge_coverage(const Asked& a) {
    if (!a.config.memory.require_coverage || a.plan.budget.exec == Exec::device) return {};
    const Coverage found = coverage(a.plan);
    if (found.uncovered_tensors == 0) return {};
    return Reason{fmt::format("{} spilled tensors have no CPU decoder ({}) and "
                              "memory.require_coverage is set",
                              found.uncovered_tensors, fmt::join(found.uncovered_formats, ", ")),
                  "leave them to the device (memory.require_coverage = false), or choose another "
                  "format"};
}

/// The budget under which the CPU multiplies everything that the device cannot, if there is one.
std::string kernel_hint(const ModelPlan& plan, std::span<const PlannedWeight* const> without) {
    uint32_t last = 0;
    for (const PlannedWeight* p : without) {
        if (p->source.layer == Step::kNoLayer || !is_covered(*p->weight->codec))
            return "choose another format (hf-quantize), or device.kind = host";
        last = std::max(last, p->source.layer);
    }
    return fmt::format(
        "let the processor multiply them: memory.gpu_layer_budget = {} with "
        "memory.offload_exec = cpu and memory.spill = layers",
        plan.config.n_layers - last - 1);
}

Judgement judge_kernels(const Asked& a) {
    std::vector<const PlannedWeight*> without;
    std::vector<std::string_view> formats;
    for (const PlannedWeight& p : a.plan.weights) {
        const Weight& w = *p.weight;
        if (p.source.row->use != Use::matrix || w.exec != Exec::device ||
            a.device.multiplies(*w.codec))
            continue;
        without.push_back(&p);
        if (std::ranges::find(formats, w.codec->name) == formats.end())
            formats.push_back(w.codec->name);
    }
    if (without.empty()) return {};
    return Reason{fmt::format("{} has no kernel for {}, but is to multiply {} tensors of that "
                              "kind, first '{}'",
                              a.device.name, fmt::join(formats, ", "), without.size(),
                              without[0]->weight->name),
                  kernel_hint(a.plan, without)};
}

// clang-format off
constexpr RefusalRow kRows[] = {
    // name                needs a spill
    {"speculation",        false, judge_speculation},
    {"PARO",               true,  judge_paro},
    {"experts",            true,  judge_experts},
    {"architecture",       true,  judge_architecture},
    {"no card",            true,  judge_card},
    {"unified memory",     true,  judge_unified},
    {"replay backend",     false, judge_replay},
    {"no mapped memory",   true,  judge_mapping},
    {"unpinned",           true,  judge_pin},
    {"forced graph",       true,  judge_graph},
    {"coverage",           true,  judge_coverage},
    {"no kernel",          false, judge_kernels},
};
// clang-format on

}  // namespace

std::span<const RefusalRow> refusal_rows() {
    return kRows;
}

void refuse(const Asked& asked) {
    const bool spills = asked.plan.layout.spilled() > 0;
    for (const RefusalRow& row : kRows)
        if (spills || !row.needs_spill)
            if (const auto reason = row.judge(asked)) throw Refusal(reason->sentence, reason->hint);
}

}  // namespace hf
