// Finding a model by what a person wrote.
#pragma once

#include <span>
#include <string>

#include "libcore/config/toml_file.h"

namespace hf {

/// Whether a tool's first argument is the model: a known name, or a path that exists. (Any other
/// first argument is the prompt.)
bool is_model(const std::string& argument, std::span<const KnownModel> models);

/// Folder of the model that comes with the program, seen from the folder that the program is in:
/// ../share/hipfire/models/demo where it is installed, models/demo in that folder or one of four
/// above it where it was built.
/// Errors  hf::Error saying where it was looked for, and how to name a model
std::string bundled_model(const std::string& program_folder);

}  // namespace hf
