// Refusals: what is asked for and cannot be honoured, known before one byte is allocated.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "libcore/base/refusal.h"
#include "libcore/config/config.h"
#include "libcore/load/model.h"

namespace hf {

/// Why not, and which key to change.
struct Reason {
    std::string sentence, hint;
};

/// What is judged: a placed plan, the device that it was placed for, and what was asked for.
struct Asked {
    const ModelPlan& plan;
    const DeviceInfo& device;
    const Config& config;
};

/// One condition. docs/refusals.md explains each by its name.
struct RefusalRow {
    std::string_view name;
    bool needs_spill;  // asked only when layers left the device
    std::optional<Reason> (*judge)(const Asked&);
};

/// In the order in which they are asked.
std::span<const RefusalRow> refusal_rows();

/// Throws the first refusal that applies.
/// Errors  Refusal
void refuse(const Asked& asked);

}  // namespace hf
