// What a tool says about itself: --help, a man page and shell completion, all made from its flags.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace hf {

/// The group of the flags that are settings; the others are in CLI11's own.
inline constexpr const char* kSettingsGroup =
    "Settings (docs/configuration.md; also in hipfire.toml and as variables)";

/// The description, then one line per flag, in the order of their declaration.
std::string help_text(const CLI::App& app);

/// A page for man(7), section 1. summary: what the tool does, in a few words.
std::string man_page(const CLI::App& app, std::string_view summary);

/// A script to be sourced: flags, the words that settings take, files.
std::string bash_completion(const CLI::App& app);

/// A file _NAME for zsh's fpath: the same with what each flag means.
std::string zsh_completion(const CLI::App& app);

}  // namespace hf
