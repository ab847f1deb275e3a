// The model as the first argument, for tools that take no prompt.
#pragma once

#include <string>

#include "tools/cli.h"

namespace hf {

/// A model named as the argument counts as --model. Empty: nothing was named.
/// Errors  hf::Error(usage) when --model is there too
void take_model(CommonFlags& flags, const std::string& argument);

/// What is to be opened: the configured model, or else the bundled one.
std::string model_path(const Config& config);

/// What --explain-config or --list ask for; empty: neither was given.
std::string answer_of(const CommonFlags& flags, const Resolved& resolved);

}  // namespace hf
