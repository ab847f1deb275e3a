// An inspection, for people and for programs.
#pragma once

#include <optional>
#include <string>

#include "libcore/run/inspect.h"
#include "libcore/run/scan_weights.h"

namespace hf {

struct InspectView {
    const Inspection& inspection;
    const WeightScan* scan = nullptr;  // null: was not asked for
    std::string kv_cache;              // name of the cache's format
    bool lists_tensors = false;
};

/// A page of tables. Control characters that a file brings become '?'.
std::string inspect_text(const InspectView& view, bool colours);

/// One object on one line; docs/hf-inspect.md describes it.
std::string inspect_json(const InspectView& view);

}  // namespace hf
