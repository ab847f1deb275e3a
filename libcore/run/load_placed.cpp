#include "libcore/run/load_placed.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "libcore/exec/session_need.h"
#include "libcore/load/host_fit.h"
#include "libcore/load/model.h"
#include "libcore/run/prompt.h"
#include "libcore/run/refuse.h"

namespace hf {
namespace {

Exec exec_of(const std::string& word) {
    for (const Exec exec : {Exec::device, Exec::cpu, Exec::split})
        if (word == name_of(exec)) return exec;
    HF_ASSERT(false);
    return Exec::device;
}

/// The longest session for which so many bytes are enough; 0: there is none. session.max_seq is too
/// long.
uint32_t tokens_within(uint64_t bytes, const ModelPlan& plan, SessionOptions session) {
    uint32_t fits = 0;
    for (uint32_t too_long = session.max_seq; too_long - fits > 1;) {
        session.max_seq = fits + (too_long - fits) / 2;
        const bool is_enough = session_need(plan, session).device_bytes <= bytes;
        (is_enough ? fits : too_long) = session.max_seq;
    }
    return fits;
}

/// As many layers as would stay by themselves; none: not even without any does it fit. The plan is
/// placed anew in between.
std::optional<uint32_t> layers_within(ModelPlan& plan, const Machine& machine,
                                      const SessionNeed& session) {
    const Budget asked = plan.budget;
    Budget automatic = asked;
    automatic.layers = Budget::Layers::automatic;
    const DeviceNeed need = place_within(plan, machine.device, machine.memory, automatic, session);
    const uint32_t stay = plan.config.n_layers - plan.layout.spilled();
    place_within(plan, machine.device, machine.memory, asked, session);
    return need.fits() ? std::optional(stay) : std::nullopt;
}

/// How more layers would stay on the device; empty: in no way that is known. What stays by itself
/// is all that fits, so only a card that is pretended can have more.
std::string more_stays(ModelPlan& plan, const Machine& machine, const SessionNeed& session) {
    if (plan.budget.layers == Budget::Layers::fixed && !machine.device.unified) {
        const auto layers = layers_within(plan, machine, session);
        if (layers && *layers > plan.config.n_layers - plan.layout.spilled())
            return fmt::format("set memory.gpu_layer_budget = {} or auto", *layers);
    }
    return machine.device.simulated ? "raise device.vram_mb" : "";
}

std::string fit_hint(ModelPlan& plan, const Machine& machine, const DeviceNeed& need,
                     const SessionOptions& session) {
    std::vector<std::string> ways;
    if (plan.budget.layers == Budget::Layers::fixed && !machine.device.unified)
        if (const auto layers = layers_within(plan, machine, session_need(plan, session)))
            ways.push_back(fmt::format("set memory.gpu_layer_budget = {} or auto", *layers));
    const uint64_t beside = need.weights + need.slack;
    if (need.available > beside)
        if (const uint32_t tokens = tokens_within(need.available - beside, plan, session))
            ways.push_back(fmt::format("set memory.max_seq = {}", tokens));
    if (machine.device.simulated) {
        constexpr uint64_t kMib = 1 << 20;
        const uint64_t least = least_device_memory(need.weights + need.session);
        ways.push_back(fmt::format("set device.vram_mb = {}", (least + kMib - 1) / kMib));
    }
    ways.emplace_back("use a smaller model");
    return fmt::format("{}", fmt::join(ways, ", or "));
}

void check_device_fits(ModelPlan& plan, const Machine& machine, const DeviceNeed& need,
                       const SessionOptions& session) {
    if (need.fits()) return;
    throw Refusal(
        fmt::format("{} bytes are needed on the device with {} of {} layers there ({} of weights, "
                    "{} of state and activations, {} of slack), but {} are free: {} are missing",
                    need.needed(), plan.config.n_layers - plan.layout.spilled(),
                    plan.config.n_layers, need.weights, need.session, need.slack, need.available,
                    need.missing()),
        fit_hint(plan, machine, need, session));
}

uint64_t headroom_of(const MemoryConfig& config) {
    return uint64_t(config.host_headroom_mb) << 20;
}

/// One session must be admitted by what was really loaded, too. A device that reads files in place
/// is the machine itself, and has no memory to divide.
void admit_loaded(const Model& model, const DeviceInfo& info, uint64_t available,
                  const SessionOptions& session) {
    if (info.in_place) return;
    const ModelFootprint loaded = footprint(model.stats, model, info, session);
    AdmissionController controller(loaded, available, loaded.pinned_bytes, 1);
    const Admission admission = controller.admit(0, session.max_seq);
    if (!admission.ok())
        throw Refusal("a session of the loaded model: " + admission.text(),
                      "lower memory.gpu_layer_budget or memory.max_seq");
}

void say_where(const ModelPlan& plan, const Log& log) {
    for (const std::string& line :
         split_lines(plan.config.n_layers, plan.layout.spilled(), plan.budget))
        log.info(line);
}

/// Of what was really loaded.
void say_who_multiplies(const Model& model, const Log& log) {
    if (model.budget.exec == Exec::device) return;
    const Coverage found = coverage(model);
    const bool is_news = found.spilled == 0 || found.uncovered_tensors > 0;
    log.write(is_news ? LogLevel::info : LogLevel::debug,
              found.spilled > 0 ? coverage_line(found)
                                : "cpu exec: nothing is spilled, so nothing changes");
    const bool wants_split = model.budget.exec == Exec::split && model.layout.spilled() > 0 &&
                             model.budget.split_share < 1;
    const auto is_small = [&](const PlannedWeight& p) {
        return p.source.layer == Step::kNoLayer || p.weight->residency == Residency::device ||
               p.weight->bytes() < model.budget.split_least_bytes;
    };
    if (wants_split && std::ranges::all_of(model.weights, is_small))
        log.info(
            fmt::format("split: all spilled matrices are small (below {} bytes), so the CPU "
                        "multiplies them whole",
                        model.budget.split_least_bytes));
}

}  // namespace

Budget budget_of(const MemoryConfig& config) {
    Budget budget;
    if (config.gpu_layer_budget == kAutoLayers) {
        budget.layers = Budget::Layers::automatic;
    } else if (config.gpu_layer_budget) {
        budget.layers = Budget::Layers::fixed;
        budget.device_layers = uint32_t(*config.gpu_layer_budget);
    }
    budget.spill = config.spill == name_of(Spill::ffn) ? Spill::ffn : Spill::layers;
    budget.exec = exec_of(config.offload_exec);
    if (config.split_share) budget.split_share = double(*config.split_share);
    budget.pin = config.pin;
    budget.lock = config.lock;
    return budget;
}

SessionOptions session_options(const MemoryConfig& config, const ModelConfig& model,
                               uint32_t max_logits) {
    return {context_size(config.max_seq, model.max_positions), kv_type_by_name(config.kv_cache),
            max_logits};
}

LaneOptions lane_options(const Config& config, const Log& log) {
    LaneOptions options;
    options.capture = config.graph.forward;
    options.trace_cpu = config.developer.cpu_exec_trace;
    options.log = log;
    return options;
}

DeviceNeed place_planned(ModelPlan& plan, const Machine& machine, const Config& config,
                         const SessionOptions& session) {
    const auto& [info, memory, ram] = machine;
    const DeviceNeed need =
        place_within(plan, info, memory, budget_of(config.memory), session_need(plan, session));
    const SessionNeed placed = session_need(plan, session);  // the processor's side is known now
    refuse({plan, info, config});
    if (!info.in_place) check_device_fits(plan, machine, need, session);
    check_host_fits(host_need(planned_totals(plan), plan, info, placed), ram,
                    headroom_of(config.memory), is_guarded(config.memory.oom_guard, info, ram),
                    [&] { return more_stays(plan, machine, placed); });
    return need;
}

ModelPlan plan_placed(std::shared_ptr<const ModelFile> file, const Device& device,
                      const Config& config, uint32_t max_logits, const Log& log,
                      const HostRam& ram) {
    ModelPlan plan =
        plan_model(std::move(file), {.tap_layers = {}, .activations = device.info().activations});
    const SessionOptions session = session_options(config.memory, plan.config, max_logits);
    place_planned(plan, {device.info(), device.memory(), ram}, config, session);
    say_where(plan, log);
    return plan;
}

Model load_planned(ModelPlan plan, Device& device, const Config& config, uint32_t max_logits,
                   const Log& log, const Progress& progress) {
    const uint64_t available = device.memory().free;
    Model model = load_model(std::move(plan), device, log, progress);
    admit_loaded(model, device.info(), available,
                 session_options(config.memory, model.config, max_logits));
    say_who_multiplies(model, log);
    return model;
}

Model load_placed(std::shared_ptr<const ModelFile> file, Device& device, const Config& config,
                  uint32_t max_logits, const Log& log, const HostRam& ram,
                  const Progress& progress) {
    return load_planned(plan_placed(std::move(file), device, config, max_logits, log, ram), device,
                        config, max_logits, log, progress);
}

}  // namespace hf
