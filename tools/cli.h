// What all tools share: the frame around main, the configuration as flags, and standard error.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
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
///
/// settings  keys that the tool uses, by how they begin ("cpu.", "run.seed"): these get a flag. All
///           the others can only be set by --set, as the file and the variables do.
void add_common_flags(CLI::App& app, CommonFlags& flags,
                      std::initializer_list<std::string_view> settings);

/// Parses, and answers --help and --version itself, as well as --man and --completion SHELL, which
/// packagers use: the exit code then, or nothing to go on.
///
/// summary  what the tool does, for its man page
/// Errors   hf::Error(usage) naming the flag
std::optional<int> parse_flags(CLI::App& app, std::string_view summary, int argc,
                               const char* const* argv);

/// Runs a tool's main. Keeps descriptors 0 to 2 from being taken by files, ignores SIGPIPE, reports
/// mapped files that shrink; catches what the tool throws and prints it as "NAME: error: ...", with
/// the flags of the keys that it names.
/// Returns the exit code.
int run_tool(const char* name, const std::function<int()>& tool);

/// Lines to standard error: "NAME: ...", "NAME: warning: ..."; in colours when they are for a
/// person. Quiet: errors, warnings, and what
/// was asked for by a setting of its own.
Log standard_error_log(const char* name, const CommonFlags& flags, const Environment& environment);

/// Whether TERM names a terminal that takes escape sequences.
bool knows_escapes(const Environment& environment);

/// Whether a descriptor, standard error if not said, is such a terminal and nobody set NO_COLOR.
bool has_colours(const Environment& environment, int descriptor = 2);

Sources config_sources(const CommonFlags& flags, const Environment& environment);

/// Known models, one "name  path  (who says so)" per line, then the folder of models, and how many
/// of its entries are left out because they do not look like models.
std::string list_models(const Resolved& resolved);

/// The folder that this program's file is in.
std::string program_folder();

}  // namespace hf
