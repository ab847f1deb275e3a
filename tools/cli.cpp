#include "tools/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>

#include <fmt/format.h>

#include "cpuexec/isa.h"
#include "libcore/base/refusal.h"
#include "libcore/config/keys.h"
#include "libcore/config/nearest.h"
#include "libcore/device/open_device.h"
#include "libcore/file/mapped_file.h"
#include "libcore/file/model_file.h"
#include "tools/manual.h"
#include "tools/output.h"
#include "tools/page.h"

namespace hf {
namespace {

/// What stands before a line, and its colour.
struct LevelStyle {
    std::string_view prefix, colour;
};
constexpr LevelStyle kLevels[] = {
    // by LogLevel
    {"error: ", kRed}, {"warning: ", kYellow}, {"", kDim}, {"", kDim}, {"", kDim}, {"", kDim},
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
    text += "\ndevices:";
    for (const std::string_view kind : find_key("device.kind")->value.words) {
        if (kind == "auto") continue;
        try {
            const auto device = open_device(kind, {.threads = 0, .level = cpu::detect_level()});
            const DeviceInfo& info = device->info();
            text +=
                fmt::format("\n  {}: {}{}", kind, info.name, info.simulated ? " (simulated)" : "");
        } catch (const Error&) {
            text += fmt::format("\n  {}: none", kind);
        }
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

void add_common_flags(CLI::App& app, CommonFlags& flags,
                      std::initializer_list<std::string_view> settings) {
    const auto is_used = [&](const Key& key) {
        return std::ranges::any_of(settings,
                                   [&](auto start) { return key.path.starts_with(start); });
    };
    const auto add_setting = [&flags](FlagValue setting) {
        flags.settings.push_back(std::move(setting));
    };
    // trigger_on_parse: settings come in the order in which they were written, and the last counts
    for (const Key& key : config_keys()) {
        if (key.flag.empty() || !is_used(key)) continue;
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
        option->trigger_on_parse()->group(kSettingsGroup);
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
                         "Version, compiler, instruction levels, devices");
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

/// Not in --help: what packagers ask for, in place of all other arguments.
///   --man                    the man page
///   --completion bash|zsh    completion for that shell
std::optional<std::string> asked_text(const CLI::App& app, std::string_view summary, int argc,
                                      const char* const* argv) {
    const auto word = [&](int i) { return i < argc ? std::string_view(argv[i]) : ""; };
    if (word(1) == "--man") return man_page(app, summary);
    if (word(1) != "--completion") return std::nullopt;
    if (word(2) == "bash") return bash_completion(app);
    if (word(2) == "zsh") return zsh_completion(app);
    throw Error(
        fmt::format("--completion: '{}' is no shell that is known; bash and zsh are", word(2)),
        Fault::usage);
}

/// The flag that is near to a name; empty: none is. A setting is known by its key, too.
std::string nearest_flag(const CLI::App& app, const std::string& wrong) {
    std::vector<std::string> names, flags;
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    flags = names;
    for (const Key& key : config_keys()) {
        if (key.flag.empty() || !app.get_option_no_throw(long_name(key.flag))) continue;
        names.push_back(fmt::format("--{}", key.path.substr(key.path.rfind('.') + 1)));
        std::ranges::replace(names.back(), '_', '-');
        flags.push_back(long_name(key.flag));
    }
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string_view found = nearest(wrong, known, "--");
    return found.empty() ? "" : flags[size_t(std::ranges::find(known, found) - known.begin())];
}

/// What is wrong with the first argument that nothing takes.
std::string unexpected(const CLI::App& app) {
    const std::vector<std::string> left = app.remaining();
    const auto flag = std::ranges::find_if(left, [](auto& word) { return word.starts_with('-'); });
    if (flag == left.end())
        return fmt::format("'{}' is one argument too many", one_line(left.back()));
    const std::string wrong = flag->substr(0, flag->find('='));
    return fmt::format("unknown flag {}{}", one_line(wrong),
                       nearest_words(nearest_flag(app, wrong)));
}

}  // namespace

std::optional<int> parse_flags(CLI::App& app, std::string_view summary, int argc,
                               const char* const* argv) {
    if (const auto text = asked_text(app, summary, argc, argv)) {
        Output().write(*text);
        return 0;
    }
    try {
        app.parse(without_empty(argc, argv));
        return std::nullopt;
    } catch (const CLI::CallForHelp&) {
        Output().write(help_text(app));
    } catch (const CLI::CallForVersion& version) {
        Output().write(std::string(version.what()) + "\n");
    } catch (const CLI::ExtrasError&) {
        throw Error(unexpected(app) + "; --help lists the flags", Fault::usage);
    } catch (const CLI::ParseError& error) {
        throw Error(fmt::format("{}; --help lists the flags", error.what()), Fault::usage);
    }
    return 0;
}

namespace {

/// A text with the flag beside each key that has one and is named without: "memory.max_seq
/// (--ctx)". A flag that the text names already is left alone, and so are keys in quotes.
std::string with_flags(std::string text) {
    for (const Key& key : config_keys()) {
        if (key.flag.empty()) continue;
        const std::string flag = long_name(key.flag), path(key.path);
        const size_t at = text.find(path), end = at + path.size();
        if (at == text.npos || text.find(flag) != text.npos) continue;
        const bool is_word = (at == 0 || text[at - 1] == ' ' || text[at - 1] == '(') &&
                             (end == text.size() || std::strchr(" ,;:.)", text[end]));
        if (is_word) text.insert(end, fmt::format(" ({})", flag));
    }
    return text;
}

}  // namespace

int run_tool(const char* name, const std::function<int()>& tool) {
    hold_standard_descriptors();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is a write that fails
    report_shrunk_files();
    const auto complain = [&](std::string_view what) {
        write_error(
            styled(name, LogLevel::error, with_flags(std::string(what)), /*colours=*/false));
    };
    try {
        return tool();
    } catch (const Refusal& refusal) {
        complain(refusal.what());
        write_error(fmt::format("{}: hint: {}\n", name, with_flags(refusal.hint())));
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

bool knows_escapes(const Environment& environment) {
    const std::string term = variable(environment, "TERM");
    return !term.empty() && term != "dumb" && term != "unknown";
}

bool has_colours(const Environment& environment, int descriptor) {
    return variable(environment, "NO_COLOR").empty() && knows_escapes(environment) &&
           is_terminal(descriptor);
}

Log standard_error_log(const char* name, const CommonFlags& flags, const Environment& environment) {
    const auto sink = [name, colours = has_colours(environment)](LogLevel level,
                                                                 std::string_view line) {
        write_error(styled(name, level, printable(line), colours));
    };
    return {sink, flags.is_quiet     ? LogLevel::asked
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
    struct Row {
        std::string name, path, source;
    };
    std::vector<Row> rows = {
        {std::string(find_key("run.model")->preset), "comes with hipfire", ""}};
    size_t others = 0;  // in the folder: a configured model is listed whatever it is
    for (const KnownModel& m : resolved.models) {
        if (m.source == kModelsFolder && !looks_like_model(m.path))
            ++others;
        else
            rows.push_back({printable(m.name), printable(m.path), printable(m.source)});
    }
    size_t name_width = 0, path_width = 0;
    for (const Row& row : rows) {
        name_width = std::max(name_width, row.name.size());
        path_width = std::max(path_width, row.path.size());
    }
    std::string text;
    for (const Row& row : rows)
        text += fmt::format("{:{}}  {:{}}{}{}\n", row.name, name_width, row.path,
                            row.source.empty() ? 0 : path_width, row.source.empty() ? "" : "  ",
                            row.source);
    const std::string& folder = resolved.models_folder;
    text += fmt::format("folder of models ({}): {}", kModelsFolder,
                        folder.empty() ? "none" : printable(folder));
    if (others > 0)
        text += fmt::format("; {} more in it {}", others,
                            others == 1 ? "is no model" : "are no models");
    return text + "\n";
}

std::string program_folder() {
    std::error_code unreadable;
    return std::filesystem::read_symlink("/proc/self/exe", unreadable).parent_path();
}

}  // namespace hf
