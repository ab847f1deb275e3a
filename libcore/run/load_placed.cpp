#include "libcore/run/load_placed.h"

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/exec/session_need.h"
#include "libcore/load/model.h"
#include "libcore/run/prompt.h"

namespace hf {
namespace {

Exec exec_of(const std::string& word) {
    for (const Exec exec : {Exec::device, Exec::cpu, Exec::split})
        if (word == name_of(exec)) return exec;
    HF_ASSERT(false);
    return Exec::device;
}

void refuse_what_does_not_fit(const ModelPlan& plan, const DeviceNeed& need) {
    if (need.fits()) return;
    const uint32_t stay = plan.config.n_layers - plan.layout.spilled();
    throw Error(
        fmt::format("refused: {} bytes are needed on the device with {} of {} layers there "
                    "({} of weights, {} of state and activations, {} of slack), but {} are "
                    "free: {} are missing; {}lower memory.max_seq",
                    need.needed(), stay, plan.config.n_layers, need.weights, need.session,
                    need.slack, need.available, need.missing(),
                    stay > 0 ? "lower memory.gpu_layer_budget, or set it to auto, or " : ""),
        Fault::refused);
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
    return budget;
}

SessionOptions session_options(const MemoryConfig& config, const ModelConfig& model,
                               uint32_t max_logits) {
    return {context_size(config.max_seq, model.max_positions), kv_type_by_name(config.kv_cache),
            max_logits};
}

DeviceNeed place_planned(ModelPlan& plan, const DeviceInfo& info, const MemoryInfo& memory,
                         const MemoryConfig& config, const SessionOptions& session) {
    const DeviceNeed need =
        place_within(plan, info, memory, budget_of(config), session_need(plan, session));
    if (!info.in_place) refuse_what_does_not_fit(plan, need);
    return need;
}

Model load_placed(std::shared_ptr<const ModelFile> file, Device& device, const Config& config,
                  uint32_t max_logits, const Log& log) {
    ModelPlan plan =
        plan_model(std::move(file), {.tap_layers = {}, .activations = device.info().activations});
    place_planned(plan, device.info(), device.memory(), config.memory,
                  session_options(config.memory, plan.config, max_logits));
    const uint32_t spilled = plan.layout.spilled();
    for (const std::string& line : split_lines(plan.config.n_layers, spilled, plan.budget))
        log.info(line);
    Model model = load_model(std::move(plan), device, log);
    if (model.budget.exec != Exec::device)
        log.info(spilled > 0 ? coverage_line(coverage(model))
                             : "cpu exec: nothing is spilled, so nothing changes");
    return model;
}

}  // namespace hf
