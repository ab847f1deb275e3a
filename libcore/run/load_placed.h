// From a file and a configuration to a model on a device: plan, place, refuse, admit, load.
#pragma once

#include <memory>

#include "libcore/config/config.h"
#include "libcore/device/host_ram.h"
#include "libcore/exec/session.h"
#include "libcore/load/fit.h"

namespace hf {

/// The budget that a configuration asks for. Its words were checked when it was read.
Budget budget_of(const MemoryConfig& config);

/// A session of as many tokens as the configuration has and the model can.
SessionOptions session_options(const MemoryConfig& config, const ModelConfig& model,
                               uint32_t max_logits);

/// How the two lanes work, and that they say so.
LaneOptions lane_options(const Config& config, const Log& log);

/// What a placement must know of where it will run.
struct Machine {
    const DeviceInfo& device;
    MemoryInfo memory;  // of the device
    HostRam ram;
};

/// Places a plan, with room for one session, and refuses what cannot be: first what is not allowed
/// (refuse.h), then what the device cannot hold, then what the host cannot. Nothing is read or
/// allocated.
/// Errors  Refusal with the key to change; for memory with needed, available and missing
DeviceNeed place_planned(ModelPlan& plan, const Machine& machine, const Config& config,
                         const SessionOptions& session);

/// The first half of the way: plan, place, refuse, and say where layers go, now that it is certain.
/// Errors  as plan_model and place_planned
ModelPlan plan_placed(std::shared_ptr<const ModelFile> file, const Device& device,
                      const Config& config, uint32_t max_logits, const Log& log,
                      const HostRam& ram);

/// The second: load, and ask again with the numbers of the load.
/// Errors  as load_model and place_planned; nothing is left on the device
Model load_planned(ModelPlan plan, Device& device, const Config& config, uint32_t max_logits,
                   const Log& log, const Progress& progress);

/// Both.
Model load_placed(std::shared_ptr<const ModelFile> file, Device& device, const Config& config,
                  uint32_t max_logits, const Log& log, const HostRam& ram = read_host_ram(),
                  const Progress& progress = {});

}  // namespace hf
