// hf-crosscheck: how well a model predicts a text, how far its weights are from another's, and what
// its tokenizer and its chat template make of given texts.
// docs/hf-crosscheck.md is its manual.

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "libcore/base/error.h"
#include "libcore/file/message.h"
#include "libcore/run/hash.h"
#include "libcore/run/load_placed.h"
#include "libcore/run/open_tokenizer.h"
#include "libcore/run/perplexity.h"
#include "libcore/text/chat.h"
#include "tools/crosscheck_cpu.h"
#include "tools/crosscheck_output.h"
#include "tools/crosscheck_text.h"
#include "tools/device_facts.h"
#include "tools/model_argument.h"
#include "tools/output.h"
#include "tools/progress.h"

namespace hf {
namespace {

constexpr const char* kName = "hf-crosscheck";
constexpr const char* kSummary =
    "how well a model predicts a text, how far its weights are from another's, "
    "and what its tokenizer and chat template make of given texts";
constexpr const char* kIntroduction =
    "hf-crosscheck --perplexity models/demo/eval.txt --tokens 2048\n"
    "                                                      how well the bundled model predicts it\n"
    "hf-crosscheck MODEL --perplexity FILE --ctx 2048      another model, in windows of 2048\n"
    "hf-crosscheck MODEL --weights ORIGINAL                how far its weights are from those\n"
    "hf-crosscheck --cpu                                   whether this machine computes rightly\n"
    "hf-crosscheck TOKENIZER --tokenize FILE.jsonl         the ids of its lines; tokenizer.json "
    "will do";

struct CrosscheckFlags {
    CommonFlags common;
    std::string model, text, original;
    std::string tokenize, render;  // paths of JSON lines
    std::string chat_template;     // a name; empty: the model's own
    uint64_t most_tokens = 0;      // 0: all
    bool is_json = false, checks_cpu = false, fails_on_skip = false;
};

/// Lines are answered alone; the other checks may be asked for together.
void check(const CrosscheckFlags& f) {
    if (f.common.explain_config || f.common.list_models) return;
    const int texts = !f.tokenize.empty() + !f.render.empty();
    const bool has_weights = !f.text.empty() || !f.original.empty() || f.checks_cpu;
    if (texts + has_weights == 0)
        throw Error(
            "there is nothing to check; name a text with --perplexity, a model with --weights, "
            "lines with --tokenize or --render-chat, or ask for --cpu",
            Fault::usage);
    if (texts + has_weights > 1)
        throw Error(fmt::format("{} cannot be asked for beside another check",
                                f.tokenize.empty() ? "--render-chat" : "--tokenize"),
                    Fault::usage);
    if (f.chat_template.empty()) return;
    if (f.render.empty()) throw Error("--template is for --render-chat", Fault::usage);
    template_by_name(f.chat_template);
}

/// Digits, from 1; "010" is ten.
uint64_t parse_count(const char* flag, const std::string& text) {
    uint64_t count = 0;
    const char* end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data(), end, count);
    if (fault != std::errc() || stop != end || count == 0)
        throw Error(fmt::format("flag {}: {} is not an integer from 1 to {}", flag, shown(text),
                                UINT64_MAX),
                    Fault::usage);
    return count;
}

std::optional<int> parse_crosscheck_flags(int argc, const char* const* argv,
                                          CrosscheckFlags& flags) {
    CLI::App app(kIntroduction, kName);
    app.set_help_flag("-h,--help", "This text");
    app.add_option("model", flags.model, "");
    app.add_option("--perplexity", flags.text,
                   "Perplexity over the text of a file; - is standard input")
        ->type_name("FILE");
    app.add_option_function<std::string>(
           "--tokens",
           [&](const std::string& text) { flags.most_tokens = parse_count("--tokens", text); },
           "Of the text only so many tokens")
        ->type_name("N");
    app.add_option("--weights", flags.original,
                   "Relative error of the weights against those of another model")
        ->type_name("MODEL");
    const auto* cpu = app.add_flag("--cpu", flags.checks_cpu, "Every function of the CPU engine");
    app.add_flag("--no-skip", flags.fails_on_skip, "What --cpu cannot check is an error")
        ->needs(app.get_option(cpu->get_name()));
    app.add_option(
           "--tokenize", flags.tokenize,
           "{\"text\"} to {\"ids\", \"decoded\"}, one JSON object a line; - is standard input")
        ->type_name("FILE");
    app.add_option("--render-chat", flags.render,
                   "{\"messages\", \"options\"} to {\"text\", \"ids\"}, one JSON object a line")
        ->type_name("FILE");
    app.add_option("--template", flags.chat_template,
                   "Render in this chat template: " + template_names())
        ->type_name("NAME");
    app.add_flag("--json", flags.is_json, "One JSON object per check");
    add_common_flags(app, flags.common, {"run.model", "memory.", "device.", "cpu."});
    if (const auto exit_code = parse_flags(app, kSummary, argc, argv)) return exit_code;
    take_model(flags.common, flags.model);
    check(flags);
    return std::nullopt;
}

/// Errors  hf::Error(usage) when there is nothing in it to predict; so no model is loaded for it
std::vector<int32_t> read_tokens(const CrosscheckFlags& flags, const Tokenizer& tokenizer) {
    std::vector<int32_t> ids = tokenizer.encode(read_text(flags.text));
    std::string label = flags.text == "-" ? "standard input" : flags.text;
    if (flags.most_tokens > 0 && flags.most_tokens < ids.size()) {
        ids.resize(flags.most_tokens);
        label += fmt::format(", of which --tokens takes {}", flags.most_tokens);
    }
    check_predictable(label, ids.size(), ids_in_front(tokenizer).size());
    return ids;
}

struct Checker {
    const CrosscheckFlags& flags;
    const Config& config;
    const Log& log;
    std::shared_ptr<const ModelFile> file;
    Output output = {};

    void check_weights() {
        const ModelFile original = open_model_file(flags.original, log);
        cpu::ThreadPool pool(thread_count(config.cpu));
        const auto errors =
            compare_weights(*file, original, pool, terminal_progress(kName, "comparing"));
        const WeightFacts facts{file->path, original.path, errors};
        output.write(flags.is_json ? weights_json(facts) : weights_text(facts));
    }

    void check_perplexity() {
        const auto tokenizer = open_tokenizer(*file);
        if (!tokenizer)
            throw Error(file->path + " has no tokenizer, so it cannot read text", Fault::refused);
        const std::vector<int32_t> text = read_tokens(flags, *tokenizer);
        const auto device = open_device(config.device.kind, device_options(config));
        const Model model = load_placed(file, *device, config, Session::kMaxTokens, log,
                                        read_host_ram(), terminal_progress(kName, "loading"));
        const SessionOptions options =
            session_options(config.memory, model.config, Session::kMaxTokens);
        Session session(model, *device, options);
        const TextScore score = score_text(session, text, ids_in_front(*tokenizer),
                                           terminal_progress(kName, "reading"));
        const ScoreFacts facts{.model = file->path,
                               .architecture = std::string(model.arch->name),
                               .text = flags.text,
                               .text_hash = hash_answer(text, {}),
                               .device = device->info(),
                               .products = product_kinds(model, device->info()),
                               .kv_cache = config.memory.kv_cache,
                               .context = options.max_seq,
                               .score = score};
        output.write(flags.is_json ? score_json(facts) : score_line(facts));
        if (!output.is_closed()) log.info(passes_line(facts));
    }
};

/// The template asked for, or the model's own.
const ChatTemplate& template_of(const CrosscheckFlags& flags, const ModelFile& file) {
    if (!flags.chat_template.empty()) return template_by_name(flags.chat_template);
    const bool has_architecture = !file.config.empty() || file.gguf.has("general.architecture");
    const std::string_view architecture =
        file.chat_template.empty() && has_architecture ? architecture_of(file).name : "";
    if (const ChatTemplate* own = choose_template(file.path, file.chat_template, architecture))
        return *own;
    throw Error(fmt::format("{} has no chat template; name one with --template ({})", file.path,
                            template_names()),
                Fault::refused);
}

void answer_lines(const CrosscheckFlags& flags, const ModelFile& file) {
    const auto tokenizer = open_tokenizer(file);
    if (!tokenizer)
        throw Error(file.path + " has no tokenizer, so it cannot read text", Fault::refused);
    Output output;
    if (!flags.tokenize.empty())
        tokenize_lines(*tokenizer, flags.tokenize, output);
    else
        render_lines(*tokenizer, template_of(flags, file), flags.render, output);
}

int run(int argc, char** argv) {
    const Environment environment = read_environment(environ);
    CrosscheckFlags flags;
    if (const auto exit_code = parse_crosscheck_flags(argc, argv, flags)) return *exit_code;
    const Log log = standard_error_log(kName, flags.common, environment);
    const Resolved resolved = resolve_config(config_sources(flags.common, environment), log);
    if (const std::string answer = answer_of(flags.common, resolved); !answer.empty()) {
        Output().write(answer);
        return 0;
    }
    if (flags.checks_cpu) check_cpu(resolved.config, {flags.is_json, flags.fails_on_skip}, log);
    if (flags.checks_cpu && flags.text.empty() && flags.original.empty()) return 0;
    const std::string path = model_path(resolved.config);
    if (!flags.tokenize.empty() || !flags.render.empty()) {
        answer_lines(flags, open_model_texts(path, log));
        return 0;
    }
    Checker checker{flags, resolved.config, log,
                    std::make_shared<const ModelFile>(open_model_file(path, log))};
    if (!flags.original.empty()) checker.check_weights();
    if (!flags.text.empty()) checker.check_perplexity();
    return 0;
}

}  // namespace
}  // namespace hf

int main(int argc, char** argv) {
    return hf::run_tool(hf::kName, [&] { return hf::run(argc, argv); });
}
