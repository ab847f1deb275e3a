// From a file and a configuration to a model on a device: plan, place, refuse, admit, load.
#pragma once

#include <memory>

#include "libcore/config/config.h"
#include "libcore/exec/session.h"
#include "libcore/load/fit.h"

namespace hf {

/// The budget that a configuration asks for. Its words were checked when it was read.
Budget budget_of(const MemoryConfig& config);

/// A session of as many tokens as the configuration has and the model can.
SessionOptions session_options(const MemoryConfig& config, const ModelConfig& model,
                               uint32_t max_logits);

/// Places a plan for a device, with room for one session, and refuses what cannot be. Nothing is
/// read or allocated.
/// Errors  hf::Error(refused) with needed, available, missing and the key to change
DeviceNeed place_planned(ModelPlan& plan, const DeviceInfo& info, const MemoryInfo& memory,
                         const MemoryConfig& config, const SessionOptions& session);

/// The whole way. Says where layers went once that is certain.
/// Errors  as plan_model, place_planned and load_model; nothing is left on the device
Model load_placed(std::shared_ptr<const ModelFile> file, Device& device, const Config& config,
                  uint32_t max_logits, const Log& log);

}  // namespace hf
