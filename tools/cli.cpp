#include "tools/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <new>

#include <fmt/format.h>

#include "cpuexec/isa.h"
#include "libcore/base/refusal.h"
#include "libcore/config/keys.h"
#include "libcore/device/open_device.h"
#include "libcore/file/mapped_file.h"
#include "tools/output.h"

namespace hf {
namespace {

constexpr std::string_view kRed = "\x1b[31m", kYellow = "\x1b[33m", kDim = "\x1b[2m",
                           kPlain = "\x1b[0m";

/// What stands before a line, and its colour.
struct LevelStyle {
    std::string_view prefix, colour;
};
constexpr LevelStyle kLevels[] = {
    // by LogLevel
    {"error: ", kRed}, {"warning: ", kYellow}, {"", kDim}, {"", kDim}, {"", kDim},
};

std::string styled(const char* tool, LogLevel level, std::string_view line, bool colours) {
    const LevelStyle style = kLevels[size_t(level)];
    if (!colours) return fmt::format("{}: {}{}\n", tool, style.prefix, line);
    return fmt::format("{}{}: {}{}{}\n", style.colour, tool, style.prefix, line, kPlain);
}

/// A file that got descriptor 1 because the parent had closed it would receive the tool's text.
void hold_standard_descriptors() {
    for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != descriptor) _exit(1);
}

std::string version_text() {
    std::string text =
        fmt::format("hipfire {}, {}\ninstruction levels of this CPU:", HF_VERSION, HF_COMPILER);
    for (size_t level = 0; level < cpu::kLevels; ++level)
        if (cpu::cpu_has(cpu::Level(level)))
            text += fmt::format(" {}", cpu::name(cpu::Level(level)));
    const auto device = open_device("auto", {.threads = 0, .level = cpu::detect_level()});
    const DeviceInfo& info = device->info();
    return text + fmt::format("\ndevice: {} ({}{})", info.name, info.kind,
                              info.simulated ? ", simulated" : "");
}

constexpr const char* kSettings =
    "Settings (docs/configuration.md; also in hipfire.toml and as variables)";

std::string flag_names(const CLI::Option& option) {
    const std::string names = option.get_name(/*positional=*/false, /*all_options=*/true);
    return option.get_type_name().empty() ? names : names + " " + option.get_type_name();
}

/// The description, then one line per flag, in the order of their declaration.
std::string help_text(const CLI::App& app) {
    std::string text = app.get_description() + "\n";
    for (const std::string& group : {std::string("Options"), std::string(kSettings)}) {
        text += fmt::format("\n{}:\n", group);
        for (const CLI::Option* option : app.get_options())
            if (option->get_group() == group && !option->get_positional())
                text += fmt::format("  {:24} {}\n", flag_names(*option), option->get_description());
    }
    return text;
}

/// What stands for a value in the help, by Kind.
constexpr const char* kPlaceholders[] = {"TEXT", "PATH", "N", "X", ""};

std::string meaning_with_words(const Key& key) {
    return key.value.kind == Kind::word ? fmt::format("{} ({})", key.meaning, accepted(key.value))
                                        : std::string(key.meaning);
}

/// "-m,--model" is spelled "--model" in messages, "--gpu-layers,--budget" by its first name.
std::string long_name(std::string_view flag) {
    flag.remove_prefix(flag.find("--"));
    return std::string(flag.substr(0, flag.find(',')));
}

}  // namespace

void add_common_flags(CLI::App& app, CommonFlags& flags) {
    const auto add_setting = [&flags](FlagValue setting) {
        flags.settings.push_back(std::move(setting));
    };
    // trigger_on_parse: settings come in the order in which they were written, and the last counts
    for (const Key& key : config_keys()) {
        if (key.flag.empty()) continue;
        const auto set = [=](const std::string& text) {
            add_setting({std::string(key.path), text, long_name(key.flag)});
        };
        CLI::Option* option = is_switch(key)
                                  ? app.add_flag_function(
                                        std::string(key.flag),
                                        [=](int64_t times) { set(times > 0 ? "true" : "false"); },
                                        std::string(key.meaning))
                                  : app.add_option_function<std::string>(std::string(key.flag), set,
                                                                         meaning_with_words(key))
                                        ->type_name(kPlaceholders[size_t(key.value.kind)]);
        option->trigger_on_parse()->group(kSettings);
    }
    app.add_option_function<std::string>(
           "--set", [=](const std::string& text) { add_setting(parse_set(text)); },
           "Any setting, by its key")
        ->type_name("KEY=VALUE")
        ->trigger_on_parse();
    app.add_option("--config", flags.config_path, "Configuration file to use")->type_name("PATH");
    app.add_option("--profile-config", flags.profile, "Use [profiles.NAME] of that file")
        ->type_name("NAME");
    app.add_flag("--explain-config", flags.explain_config, "Print every setting and who said so");
    app.add_flag("--list", flags.list_models, "Print the models known by name");
    app.add_flag("-q,--quiet", flags.is_quiet, "No summary, only warnings and errors");
    app.add_flag("-v,--verbose", flags.is_verbose, "More about what is done");
    app.set_version_flag("--version", version_text,
                         "Version, compiler, instruction levels, device");
}

void hide_settings(CLI::App& app, std::string_view section) {
    for (const Key& key : config_keys())
        if (!key.flag.empty() && key.path.starts_with(fmt::format("{}.", section)))
            app.get_option(long_name(key.flag))->group("");
}

namespace {

/// The arguments without those that say nothing: an empty text for a setting ("--seed=") leaves it
/// unset. The parser would take the next argument for the value.
/// Errors  hf::Error(usage) for another flag whose value is empty
std::vector<std::string> without_empty(int argc, const char* const* argv) {
    std::vector<std::string> kept;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--") {
            kept.insert(kept.end(), argv + i, argv + argc);
            break;
        }
        const bool is_empty =
            word.starts_with("--") && word.find('=') == word.size() - 1 && word.size() > 3;
        if (!is_empty) {
            kept.emplace_back(word);
            continue;
        }
        const std::string_view flag = word.substr(0, word.size() - 1);
        const auto names = [&](const Key& key) {
            return fmt::format(",{},", key.flag).find(fmt::format(",{},", flag)) !=
                   std::string::npos;
        };
        if (std::ranges::none_of(config_keys(), names))
            throw Error(fmt::format("flag {}: the value is empty", flag), Fault::usage);
    }
    std::ranges::reverse(kept);  // as the parser wants them
    return kept;
}

}  // namespace

std::optional<int> parse_flags(CLI::App& app, int argc, const char* const* argv) {
    try {
        app.parse(without_empty(argc, argv));
        return std::nullopt;
    } catch (const CLI::CallForHelp&) {
        Output().write(help_text(app));
    } catch (const CLI::CallForVersion& version) {
        Output().write(std::string(version.what()) + "\n");
    } catch (const CLI::ParseError& error) {
        throw Error(fmt::format("{}; --help lists the flags", error.what()), Fault::usage);
    }
    return 0;
}

int run_tool(const char* name, const std::function<int()>& tool) {
    hold_standard_descriptors();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is a write that fails
    report_shrunk_files();
    const auto complain = [&](std::string_view what) {
        write_error(styled(name, LogLevel::error, what, /*colours=*/false));
    };
    try {
        return tool();
    } catch (const Refusal& refusal) {
        complain(refusal.what());
        write_error(fmt::format("{}: hint: {}\n", name, refusal.hint()));
        return int(refusal.fault());
    } catch (const Error& error) {
        complain(error.what());
        return int(error.fault());
    } catch (const std::bad_alloc&) {
        complain("the memory ran out");
    } catch (const std::exception& error) {
        complain(error.what());
    }
    return int(Fault::world);
}

bool has_colours(const Environment& environment, int descriptor) {
    return variable(environment, "NO_COLOR").empty() && is_terminal(descriptor);
}

Log standard_error_log(const char* name, const CommonFlags& flags, const Environment& environment) {
    const auto sink = [name, colours = has_colours(environment)](LogLevel level,
                                                                 std::string_view line) {
        write_error(styled(name, level, line, colours));
    };
    return {sink, flags.is_quiet     ? LogLevel::warn
                  : flags.is_verbose ? LogLevel::trace
                                     : LogLevel::info};
}

Sources config_sources(const CommonFlags& flags, const Environment& environment) {
    Sources sources{
        .flags = flags.settings, .environment = environment, .config_path = {}, .profile = {}};
    if (!flags.config_path.empty()) sources.config_path = flags.config_path;
    if (!flags.profile.empty()) sources.profile = flags.profile;
    return sources;
}

std::string list_models(const Resolved& resolved) {
    std::string text = fmt::format("{:20} comes with hipfire\n", find_key("run.model")->preset);
    for (const KnownModel& model : resolved.models)
        text += fmt::format("{:20} {}\n", model.name, model.path);
    return text;
}

std::string program_folder() {
    std::error_code unreadable;
    return std::filesystem::read_symlink("/proc/self/exe", unreadable).parent_path();
}

}  // namespace hf
