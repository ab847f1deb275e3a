// A plan of where weights go, for people and for programs.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "tools/inspect_output.h"
#include "tools/page.h"

namespace hf {

/// Which weight each tensor of the file becomes; null: none, or there is no plan.
std::vector<const PlannedWeight*> weights_by_tensor(const InspectView& view);

/// Whether the CPU gets a copy of something: of a vector, or of the sidecars of a matrix.
bool has_mirror(const PlannedWeight& p);

/// "pinned, cpu": where a weight lives and who multiplies it.
std::string place_text(const PlannedWeight& p);

/// Bytes and speeds of the plan, a bar per layer, the passes; the sweep and the steps if asked for.
void show_plan(Page& page, const PlanView& view);

/// The object `plan` of docs/hf-inspect.md.
nlohmann::ordered_json plan_json(const PlanView& view);

/// What a tensor says about its place.
nlohmann::ordered_json place_json(const PlannedWeight& p, const DeviceInfo& device);

}  // namespace hf
