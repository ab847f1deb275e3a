#include "tools/manual.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "libcore/config/keys.h"

namespace hf {
namespace {

constexpr const char* kOptionsGroup = "Options";  // CLI11's own

using Flags = std::vector<const CLI::Option*>;

/// The flags of a group; without one, all that --help names.
Flags flags_of(const CLI::App& app, std::string_view group = {}) {
    Flags flags;
    for (const CLI::Option* option : app.get_options())
        if (!option->get_positional() && !option->get_group().empty() &&
            (group.empty() || option->get_group() == group))
            flags.push_back(option);
    return flags;
}

/// "-m", "--model".
std::vector<std::string> spellings(const CLI::Option& flag) {
    std::vector<std::string> names;
    for (const std::string& name : flag.get_snames()) names.push_back("-" + name);
    for (const std::string& name : flag.get_lnames()) names.push_back("--" + name);
    return names;
}

bool takes_value(const CLI::Option& flag) {
    return flag.get_items_expected_max() > 0;
}
bool takes_file(const CLI::Option& flag) {
    const std::string type = flag.get_type_name();
    return type == "PATH" || type == "FILE" || type == "MODEL";
}

/// The setting that a flag is; null: it is none.
const Key* key_of(const CLI::Option& flag) {
    const std::string name = fmt::format(",--{},", flag.get_lnames().front());
    for (const Key& key : config_keys())
        if (fmt::format(",{},", key.flag).find(name) != std::string::npos) return &key;
    return nullptr;
}

/// What may be written behind a flag, if it is one of a few words.
std::vector<std::string_view> words_of(const CLI::Option& flag) {
    const Key* key = key_of(flag);
    return takes_value(flag) && key && key->value.kind == Kind::word
               ? key->value.words
               : std::vector<std::string_view>();
}

/// A name for a function of the shell.
std::string identifier(std::string name) {
    std::ranges::replace(name, '-', '_');
    return name;
}

/// A flag's meaning between brackets and single quotes.
std::string zsh_quoted(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '[' || c == ']' || c == '\\') out += '\\';
        out += c == '\'' ? "'\\''" : std::string(1, c);
    }
    return out;
}

/// Text for troff: hyphens that can be copied, and no line that is a request.
std::string troff(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        const bool at_start = i == 0 || text[i - 1] == '\n';
        if (at_start && (text[i] == '.' || text[i] == '\'')) out += "\\&";
        if (text[i] == '-') out += '\\';
        out += text[i] == '\\' ? "\\e" : std::string(1, text[i]);
    }
    return out;
}

std::string man_flag(const CLI::Option& flag) {
    std::string text =
        fmt::format(".TP\n\\fB{}\\fR", troff(fmt::format("{}", fmt::join(spellings(flag), ", "))));
    if (!flag.get_type_name().empty())
        text += fmt::format(" \\fI{}\\fR", troff(flag.get_type_name()));
    text += fmt::format("\n{}\n", troff(flag.get_description()));
    if (const Key* key = key_of(flag))
        text += fmt::format(".br\nKey \\fI{}\\fR, variable \\fI{}\\fR, default {}.\n",
                            troff(key->path), troff(key->variable), troff(key->preset));
    return text;
}

constexpr const char* kManEnd =
    ".SH EXIT STATUS\n"
    ".TP\n0\ndone\n"
    ".TP\n1\na file, a format, a device or the memory is not as it must be\n"
    ".TP\n2\na flag, a variable or the configuration is wrong; nothing was loaded\n"
    ".TP\n3\na device was required and there is none\n"
    ".TP\n4\npossible, but refused; the message names the setting\n"
    ".TP\n5\nsomething was skipped although nothing may be\n"
    ".TP\n129, 130\nended by the signal HUP; by Ctrl-C or the signal TERM\n"
    ".SH FILES\n"
    ".TP\n\\fIhipfire.toml\\fR, \\fI$XDG_CONFIG_HOME/hipfire/hipfire.toml\\fR\n"
    "Settings. What a flag says goes before a variable, and that before the file;\n"
    "\\-\\-explain\\-config shows which one counted.\n";

}  // namespace

std::string help_text(const CLI::App& app) {
    std::string text = app.get_description() + "\n";
    for (const std::string_view group : {kOptionsGroup, kSettingsGroup}) {
        text += group == kOptionsGroup ? "\n" : fmt::format("\n{}:\n", group);
        for (const CLI::Option* flag : flags_of(app, group)) {
            std::string names = fmt::format("{}", fmt::join(spellings(*flag), ","));
            if (!flag->get_type_name().empty()) names += " " + flag->get_type_name();
            text += fmt::format("  {:24} {}\n", names, flag->get_description());
        }
    }
    return text;
}

std::string man_page(const CLI::App& app, std::string_view summary) {
    const std::string name = troff(app.get_name());
    std::string text = fmt::format(
        ".TH {} 1 \"\" \"hipfire {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.nf\n{}\n.fi\n", name,
        HF_VERSION, name, troff(summary), troff(app.get_description()));
    text += ".SH OPTIONS\n";
    for (const CLI::Option* flag : flags_of(app, kOptionsGroup)) text += man_flag(*flag);
    text += ".SH SETTINGS\n";
    for (const CLI::Option* flag : flags_of(app, kSettingsGroup)) text += man_flag(*flag);
    return text + kManEnd;
}

std::string bash_completion(const CLI::App& app) {
    const std::string name = app.get_name();
    std::vector<std::string> all, free;  // free: of flags whose values cannot be guessed
    std::string cases;
    for (const CLI::Option* flag : flags_of(app)) {
        const auto names = spellings(*flag);
        const auto words = words_of(*flag);
        all.insert(all.end(), names.begin(), names.end());
        if (!words.empty())
            cases += fmt::format("    {}) words='{}' ;;\n", fmt::join(names, " | "),
                                 fmt::join(words, " "));
        else if (takes_value(*flag) && takes_file(*flag))
            cases += fmt::format("    {}) ;;\n", fmt::join(names, " | "));
        else if (takes_value(*flag))
            free.insert(free.end(), names.begin(), names.end());
    }
    std::string text = fmt::format("# Completion for {0}, made by: {0} --completion bash\n", name);
    text += fmt::format("_{}() {{\n", identifier(name));
    text +=
        "    local words= cur=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "    [[ $flag == = ]] && flag=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "    [[ $cur == = ]] && cur=\n"
        "    case $flag in\n" +
        cases;
    text += fmt::format("    {}) return ;;\n", fmt::join(free, " | "));
    text +=
        fmt::format("    *) [[ $cur == -* ]] && words='{}' ;;\n    esac\n", fmt::join(all, " "));
    text +=
        "    if [[ $words ]]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
        "    else\n"
        "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
        "    fi\n}\n";
    return text + fmt::format("complete -o filenames -F _{} {}\n", identifier(name), name);
}

std::string zsh_completion(const CLI::App& app) {
    const std::string name = app.get_name();
    std::string text = fmt::format(
        "#compdef {0}\n# Completion for {0}, made by: {0} --completion zsh\n_arguments -s \\\n",
        name);
    for (const CLI::Option* flag : flags_of(app)) {
        std::string value;
        if (const auto words = words_of(*flag); !words.empty())
            value = fmt::format(":value:({})", fmt::join(words, " "));
        else if (takes_value(*flag))
            value = fmt::format(":{}:{}", flag->get_type_name(), takes_file(*flag) ? "_files" : "");
        for (const std::string& spelled : spellings(*flag)) {
            const char* joint = value.empty() ? "" : spelled.starts_with("--") ? "=" : "+";
            text += fmt::format("  '*{}{}[{}]{}' \\\n", spelled, joint,
                                zsh_quoted(flag->get_description()), value);
        }
    }
    return text + "  '*:argument:_files'\n";
}

}  // namespace hf
