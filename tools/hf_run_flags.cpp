#include "tools/hf_run_flags.h"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "libcore/base/error.h"
#include "libcore/run/find_model.h"
#include "libcore/run/stop_strings.h"
#include "libcore/text/chat.h"

namespace hf {
namespace {

constexpr const char* kSummary = "a prompt to text";
constexpr const char* kIntroduction =
    "hf-run \"Tell me a short story about a dragon.\"    asks the bundled model\n"
    "hf-run MODEL    a chat with another one: a folder, or a name from hipfire.toml; a prompt may "
    "follow, or come through a pipe";

bool sets(const RunFlags& flags, std::string_view key) {
    const auto& settings = flags.common.settings;
    return std::any_of(settings.begin(), settings.end(),
                       [&](const FlagValue& setting) { return setting.key == key; });
}

/// Two things that cannot both be meant.
struct Conflict {
    bool first, second;
    const char* message;
};

void refuse_conflicts(const RunFlags& f) {
    const bool has_ids = !f.prompt_ids.empty(), has_template = !f.chat_template.empty();
    const Conflict conflicts[] = {
        {has_ids, !f.file.empty(), "--prompt-ids and --file both give a prompt; leave one out"},
        {has_ids, f.is_raw, "--prompt-ids are raw by themselves; leave --raw out"},
        {has_ids, sets(f, "run.system"), "--system is text, but the prompt is ids; leave one out"},
        {has_ids, has_template, "--template is for text, but the prompt is ids; leave one out"},
        {f.is_raw, has_template, "--raw leaves the chat template out that --template names"},
        {f.is_raw, sets(f, "run.system"),
         "--system needs the chat template, which --raw leaves out"},
        {f.is_raw, sets(f, "run.thinking"),
         "--thinking needs the chat template, which --raw leaves out"},
    };
    for (const Conflict& c : conflicts)
        if (c.first && c.second) throw Error(c.message, Fault::usage);
}

}  // namespace

std::optional<int> parse_run_flags(int argc, const char* const* argv, RunFlags& flags) {
    CLI::App app(kIntroduction, "hf-run");
    app.set_help_flag("-h,--help", "This text");
    app.add_option("arguments", flags.arguments, "")
        ->expected(0, 1000);  // take_model_argument says more
    const CLI::Option* file =
        app.add_option("--file", flags.file, "Read the prompt from a file; - is standard input")
            ->type_name("PATH");
    app.add_flag("--raw", flags.is_raw, "Plain text, without the chat template");
    const CLI::Option* chat_template =
        app.add_option("--template", flags.chat_template,
                       "Chat template in place of the model's own: " + template_names())
            ->type_name("NAME");
    app.add_option("--stop", flags.stop, "End the answer before this text; may be repeated")
        ->type_name("TEXT")
        ->allow_extra_args(false);
    const CLI::Option* ids =
        app.add_option("--prompt-ids", flags.prompt_ids, "The prompt as token ids: 1,2,3")
            ->type_name("IDS");
    app.add_flag("--print-ids", flags.print_ids, "Print ids, one per line, in place of the text");
    app.add_flag("--ignore-eos", flags.ignore_eos, "Go on where the model would stop");
    app.add_flag("--json", flags.is_json, "One JSON object per line: start, tokens, summary");
    app.add_flag("--hash", flags.print_hash, "Print a hash of the ids and of the last logits");
    app.add_flag("--profile", flags.is_profiled, "Show where the time goes, op by op");
    const CLI::Option* dump = app.add_option("--dump-logits", flags.dump_logits,
                                             "Write each token's logits to a .npy file")
                                  ->type_name("PATH");
    add_common_flags(app, flags.common, {""});
    if (const auto exit_code = parse_flags(app, kSummary, argc, argv)) return exit_code;
    for (const CLI::Option* option : {file, chat_template, ids, dump})
        if (option->count() > 0 && option->results().back().empty())
            throw Error(fmt::format("flag {}: the value is empty", option->get_name()),
                        Fault::usage);
    refuse_conflicts(flags);
    if (!flags.chat_template.empty()) template_by_name(flags.chat_template);
    StopStrings check(flags.stop);
    return std::nullopt;
}

void refuse_chat_flags(const RunFlags& f) {
    const std::pair<bool, const char*> flags[] = {
        {f.is_raw, "--raw"},          {f.is_json, "--json"},
        {f.print_ids, "--print-ids"}, {f.print_hash, "--hash"},
        {f.is_profiled, "--profile"}, {!f.dump_logits.empty(), "--dump-logits"}};
    for (const auto& [is_given, name] : flags)
        if (is_given)
            throw Error(fmt::format("{} needs a prompt, and there is none: write one in quotes, or "
                                    "leave the flag out for a chat",
                                    name),
                        Fault::usage);
}

/// One word that can hardly be a prompt: a path, or the name of a model's file.
bool looks_like_path(const std::string& text) {
    if (text.find_first_of(" \t\r\n") != text.npos) return false;
    return text.find('/') != text.npos || text.ends_with(".gguf") || text.ends_with(".hfq");
}

void take_model_argument(RunFlags& flags, const std::vector<KnownModel>& models) {
    auto& arguments = flags.arguments;
    const bool has_model = sets(flags, "run.model");
    const bool has_prompt = !flags.file.empty() || !flags.prompt_ids.empty();
    if (!has_model && arguments.size() == 1 && !is_model(arguments[0], models) &&
        looks_like_path(arguments[0]))
        throw Error(fmt::format("'{}' is neither a path that exists nor a known model (--list); if "
                                "it is a prompt, name the model before it",
                                arguments[0]),
                    Fault::usage);
    if (!has_model && !arguments.empty() &&
        (arguments.size() == 2 || is_model(arguments[0], models))) {
        if (!is_model(arguments[0], models))
            throw Error(
                fmt::format("'{}' is neither a path that exists nor a known model (--list); "
                            "put the whole prompt in quotes",
                            arguments[0]),
                Fault::usage);
        flags.is_model_guessed = arguments.size() == 1;
        flags.common.settings.push_back({"run.model", arguments[0], "MODEL"});
        arguments.erase(arguments.begin());
    }
    if (arguments.size() > (has_prompt ? 0 : 1))
        throw Error(fmt::format("'{}' is one argument too many: {}", arguments.back(),
                                has_prompt ? "--file or --prompt-ids already gives the prompt"
                                           : "put the whole prompt in quotes"),
                    Fault::usage);
}

}  // namespace hf
