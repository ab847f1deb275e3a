// From flags, variables and a file to one Config, and who said what.
//
// Highest first: flag, variable, override of the chosen model, file (or the profile in its place),
// built in. An empty text says nothing. Anything that is not a value of its key is an error
// wherever it stands, even where a higher source covers it.
//
// The file is the first of: --config, HIPFIRE_CONFIG, ./hipfire.toml,
// $XDG_CONFIG_HOME/hipfire/hipfire.toml (~/.config without that variable). The first two must
// exist when given; none at all is fine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/config/config.h"
#include "libcore/config/keys.h"
#include "libcore/config/toml_file.h"

namespace hf {

/// A value from the command line. `spelled` is for messages: "--kv", "--set memory.kv_cache=q8".
struct FlagValue {
    std::string key, value, spelled;
};

/// Splits what follows --set, "key=value". Throws hf::Error(usage) without a "=".
FlagValue parse_set(std::string_view assignment);

/// Names and values.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// Copies a process environment ("NAME=value", ended by null). Called once, by main.
Environment read_environment(const char* const* entries);

/// The value of a variable; empty: not set.
std::string variable(const Environment& environment, std::string_view name);

struct Sources {
    std::vector<FlagValue> flags;  // in the order given: the last one of a key counts
    Environment environment;
    std::optional<std::string> config_path;  // --config
    std::optional<std::string> profile;      // --profile-config
    std::string working_folder = ".";        // where hipfire.toml is looked for
};

/// Every source that spoke about a key, the one that counts first, the built-in value last.
struct Provenance {
    const Key* key;
    std::vector<Setting> settings;
    std::vector<Setting>
        displaced;  // what the file says itself, when a profile stands in its place
};

/// The variable that names the folder of models, and the source of those in it.
inline constexpr std::string_view kModelsFolder = "HIPFIRE_MODELS_DIR";

struct Resolved {
    Config config;                   // run.model is a path now, also when a name was given
    std::vector<Provenance> keys;    // one per row of the table, in its order
    std::vector<KnownModel> models;  // the file's, then what lies in HIPFIRE_MODELS_DIR
    std::string file;                // the file that was read; empty: none
    std::string models_folder;       // HIPFIRE_MODELS_DIR; empty: not set
};

/// Resolves everything once. Reads at most one file and lists HIPFIRE_MODELS_DIR.
///
/// run.model  a known name is that model (write ./name for a path of the same name), "bundled" is
///            the model that comes with hipfire, anything else is a path.
/// log        one warning for each HIPFIRE_* variable that is not known
/// Errors     hf::Error(usage), naming source, key, value, and what is accepted
///
/// A tool that must know the models before it can tell a name from a prompt resolves twice, first
/// with an empty Log.
Resolved resolve_config(const Sources& sources, const Log& log);

/// One aligned line per key: value, source, what it overrode, and what a profile displaced.
std::string explain(const Resolved& resolved);

}  // namespace hf
