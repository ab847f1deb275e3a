// What all tools share: the frame around main, the configuration as flags, and standard error.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/config/resolve.h"

namespace CLI {
class App;
}

namespace hf {

/// Flags that every tool has.
struct CommonFlags {
    std::vector<FlagValue> settings;  // one flag per row of the configuration table, and --set
    std::string config_path, profile;
    bool explain_config = false, list_models = false;
    bool is_quiet = false, is_verbose = false;
};

/// Declares them. `flags` must live as long as `app`.
void add_common_flags(CLI::App& app, CommonFlags& flags);

/// Leaves the settings of a section ("sampling") out of the help. They can be given all the same.
void hide_settings(CLI::App& app, std::string_view section);

/// Parses, and answers --help and --version itself: the exit code then, or nothing to go on.
/// Errors  hf::Error(usage) naming the flag
std::optional<int> parse_flags(CLI::App& app, int argc, const char* const* argv);

/// Runs a tool's main. Keeps descriptors 0 to 2 from being taken by files, ignores SIGPIPE, reports
/// mapped files that shrink; catches what the tool throws and prints it as "NAME: error: ...".
/// Returns the exit code.
int run_tool(const char* name, const std::function<int()>& tool);

/// Lines to standard error: "NAME: ...", "NAME: warning: ..."; in colours when they are for a
/// person. Quiet: warnings and errors only.
Log standard_error_log(const char* name, const CommonFlags& flags, const Environment& environment);

/// Whether a descriptor, standard error if not said, is a terminal and nobody set NO_COLOR.
bool has_colours(const Environment& environment, int descriptor = 2);

Sources config_sources(const CommonFlags& flags, const Environment& environment);

/// Known models, one "name  path" per line.
std::string list_models(const Resolved& resolved);

/// The folder that this program's file is in.
std::string program_folder();

}  // namespace hf
