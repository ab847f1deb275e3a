// A profile as people and programs read it.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "libcore/ops/profile.h"

namespace hf {

/// A table for passes of one token and one for passes of several, most time first, and what the
/// phases took beside the steps. docs/hf-run.md explains the columns.
///
/// seconds  of the whole answer
/// threads  of the device
std::string profile_text(const StepProfile& profile, double seconds, unsigned threads);

/// The rows in the same order. Described in docs/hf-run.md.
nlohmann::ordered_json profile_json(const StepProfile& profile);

}  // namespace hf
