// An inspection, for people and for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libcore/run/inspect.h"
#include "libcore/run/plan_facts.h"
#include "libcore/run/scan_weights.h"

namespace hf {

/// A plan, and what was asked about it.
struct PlanView {
    const PlanFacts& facts;
    Bandwidth bandwidth = {};           // zero: not given
    bool is_measured = false;           // the CPU's was not given
    std::vector<PlanFacts> sweep = {};  // one per budget, 0 layers first; empty: was not asked for
    bool shows_steps = false;
    bool was_loaded = false;  // and was as planned
};

struct InspectView {
    const Inspection& inspection;
    const PlanView* plan = nullptr;    // null: the model does not load
    const WeightScan* scan = nullptr;  // null: was not asked for
    std::string kv_cache;              // name of the cache's format
    bool lists_tensors = false;
};

/// A page of tables. Control characters that a file brings become '?'.
std::string inspect_text(const InspectView& view, bool colours);

/// One object on one line; docs/hf-inspect.md describes it.
std::string inspect_json(const InspectView& view);

}  // namespace hf
