// Checks of a plan: against the rules of placement, and against a load.
#pragma once

#include "libcore/run/plan_facts.h"

namespace hf {

/// What holds for every placement: spilled matrices are those of the first layers, and all that
/// the kind of spill names; whoever multiplies can read what it multiplies; with exec pcie the CPU
/// multiplies nothing; what belongs to no layer is not pinned; rows are cut inside the matrix.
/// Errors  hf::Error naming the weight: that is a mistake of ours
void check_placement(const ModelPlan& plan);

/// Loads the model, makes a session, and compares what both took with the plan, to the byte: the
/// load's own counts and the allocator's. Everything is given back.
/// Errors  hf::Error with both numbers where they differ; as load_placed and Session
void check_loaded(const PlanFacts& facts, Device& device, const Config& config, const Log& log);

}  // namespace hf
