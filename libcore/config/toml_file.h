// hipfire.toml: reads a file into settings. The only place that knows TOML.
//
//   schema_version = 1            optional; another version is refused
//   [memory]                      groups and keys of the table in keys.cpp
//   kv_cache = "q8"
//   [models.small]                a name for a model, and what differs for it
//   path = "~/models/small"
//   [models.small.sampling]
//   temperature = 0.7
//   [profiles.bench]              other values, used in place of the file's own when asked for
//   [profiles.bench.run]
//   seed = 1
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libcore/config/keys.h"

namespace hf {

/// A model with a name of its own. `path` may not exist; whoever opens it says so.
struct KnownModel {
    std::string name, path;
    std::string source;  // "hipfire.toml:9" or "HIPFIRE_MODELS_DIR"
    std::vector<Setting> overrides;
};

struct Profile {
    std::string name;
    std::vector<Setting> settings;
};

/// Everything in the file was checked, whether it is used or not.
struct TomlFile {
    std::vector<Setting> settings;  // "" and missing keys are not listed: both are unset
    std::vector<KnownModel> models;
    std::vector<Profile> profiles;
};

/// label   names the file in errors; relative paths in it start at the label's folder
/// home    what "~/" means at the start of a path
/// Errors  hf::Error(usage) with label, line and key: syntax, unknown key, wrong type, out of
///         range, a model without a path
TomlFile parse_toml(const std::string& label, std::string_view text, const std::string& home);

/// The same for a file of at most 1 MiB. A file that cannot be read is an error too.
TomlFile read_toml(const std::string& path, const std::string& home);

}  // namespace hf
