// hf-run: a prompt to text, or a chat. docs/hf-run.md is its manual.

#include <unistd.h>

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/device/open_device.h"
#include "libcore/load/mapped_weights.h"
#include "libcore/run/find_model.h"
#include "libcore/run/generate.h"
#include "libcore/run/hash.h"
#include "libcore/run/load_placed.h"
#include "libcore/run/model_defaults.h"
#include "libcore/run/npy.h"
#include "libcore/run/open_tokenizer.h"
#include "libcore/text/chat.h"
#include "tools/answer.h"
#include "tools/chat.h"
#include "tools/chat_history.h"
#include "tools/device_facts.h"
#include "tools/hf_run_flags.h"
#include "tools/profile_output.h"
#include "tools/progress.h"
#include "tools/signals.h"
#include "tools/terminal.h"

namespace hf {
namespace {

constexpr const char* kName = "hf-run";

Resolved resolve(RunFlags& flags, const Environment& environment, const Log& log) {
    const Resolved draft = resolve_config(config_sources(flags.common, environment), Log());
    take_model_argument(flags, draft.models);
    return resolve_config(config_sources(flags.common, environment), log);
}

/// The text of a file or pipe. One newline at its end is the editor's or the shell's, not the
/// prompt's.
std::string read_prompt_file(const std::string& path) {
    std::string text = read_text(path);
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

/// Whether nothing gives a prompt, and a person sits at both ends.
bool wants_chat(const RunFlags& flags) {
    return flags.arguments.empty() && flags.file.empty() && flags.prompt_ids.empty() &&
           is_terminal(STDIN_FILENO) && is_terminal(STDOUT_FILENO);
}

/// The text of the prompt: argument, file or pipe.
std::string read_prompt(const RunFlags& flags) {
    if (!flags.file.empty()) return read_prompt_file(flags.file);
    if (!flags.arguments.empty() && flags.arguments[0] != "-") return flags.arguments[0];
    if (flags.arguments.empty() && is_terminal(STDIN_FILENO))  // but the output is none
        throw Error(
            "there is no prompt; write one in quotes (hf-run \"Tell me a story.\"), name a "
            "file with --file, or send it through a pipe",
            Fault::usage);
    return read_prompt_file("-");
}

/// Which ids the sampler may pick; empty: all.
std::vector<bool> known_ids(const Tokenizer* tokenizer, uint32_t vocab) {
    std::vector<bool> known;
    for (uint32_t id = 0; tokenizer && id < vocab; ++id)
        known.push_back(tokenizer->is_known(int32_t(id)));
    return known;
}

/// Everything that is known before a weight is read.
struct Request {
    std::shared_ptr<const ModelFile> file;
    std::unique_ptr<Tokenizer> tokenizer;  // null: the model has none
    ModelDefaults defaults;
    std::vector<int32_t> prompt;                  // of a chat: empty
    const ChatTemplate* chat_template = nullptr;  // null: raw text or ids
};

void need_tokenizer(const Request& r) {
    if (!r.tokenizer)
        throw Error(fmt::format("{} has no tokenizer, so it cannot read text; give the prompt as "
                                "--prompt-ids 1,2,3",
                                r.file->path),
                    Fault::refused);
}

const ChatTemplate* template_of(const RunFlags& flags, const ModelFile& file) {
    if (!flags.chat_template.empty()) return &template_by_name(flags.chat_template);
    return choose_template(file.path, file.chat_template, architecture_of(file).name);
}

void encode_prompt(Request& r, const RunFlags& flags, const RunConfig& config, std::string text) {
    if (!flags.prompt_ids.empty()) {
        r.prompt = parse_ids(flags.prompt_ids);
        return;
    }
    need_tokenizer(r);
    if (!flags.is_raw) r.chat_template = template_of(flags, *r.file);
    r.prompt = r.chat_template ? encode_chat(*r.tokenizer, *r.chat_template,
                                             {std::move(text), config.system, config.thinking})
                               : encode_raw(*r.tokenizer, text);
}

/// A prompt that is the name of a file looks like a model: what is wrong with that says so.
std::shared_ptr<const ModelFile> open_named_model(const std::string& path, const RunFlags& flags,
                                                  const Log& log) {
    try {
        return std::make_shared<ModelFile>(open_model_file(path, log));
    } catch (const Error& error) {
        if (!flags.is_model_guessed) throw;
        throw Error(fmt::format("{}; if '{}' is the prompt, write -m bundled in front of it",
                                error.what(), path),
                    error.fault());
    }
}

Request open_request(const RunFlags& flags, const RunConfig& config, const Log& log) {
    Request r;
    const std::string path = config.model.empty() ? bundled_model(program_folder()) : config.model;
    r.file = open_named_model(path, flags, log);
    r.tokenizer = open_tokenizer(*r.file);
    if (!r.tokenizer && !flags.stop.empty())
        throw Error(fmt::format("{} has no tokenizer, so its answers have no text that --stop "
                                "could find; leave it out",
                                r.file->path),
                    Fault::refused);
    r.defaults = read_model_defaults(*r.file, r.tokenizer.get());
    return r;
}

/// The model's own advice on sampling, else its card's.
SamplingConfig recommended(const Request& r, const RunConfig& config) {
    if (!r.chat_template || r.defaults.sampling != SamplingConfig{}) return r.defaults.sampling;
    return card_sampling(r.chat_template->name, config.thinking);
}

RunFacts gather_facts(const Request& r, const Model& model, const Device& device,
                      const Config& config) {
    return {
        .model = r.file->path,
        .architecture = std::string(model.arch->name),
        .container = std::string(r.file->container),
        .device = device.info(),
        .products = product_kinds(model, device.info()),
        .kv_cache = config.memory.kv_cache,
        .max_seq = context_size(config.memory.max_seq, model.config.max_positions),
        .chat_template = std::string(r.chat_template ? r.chat_template->name : ""),
        .answer_begins = r.chat_template
                             ? answer_beginning(*r.tokenizer, *r.chat_template, config.run.thinking)
                             : "",
        .sampling = sampling_options(config.sampling, recommended(r, config.run),
                                     config.run.seed.value_or(std::random_device()())),
        .prompt_tokens = uint32_t(r.prompt.size()),
        .prompt_hash = hash_answer(r.prompt, {}),
    };
}

SessionOptions session_of(const Model& model, const Config& config, const Log& log) {
    SessionOptions options = session_options(config.memory, model.config, 1);
    options.lanes = lane_options(config, log);
    return options;
}

/// From the disk, where weights are read in the mapped file. False: it was interrupted.
bool bring_in(const ModelPlan& plan, const Device& device) {
    touch_weights(plan, device.info(), read_host_ram(), terminal_progress(kName, "loading"),
                  interrupted());
    return !interrupted();
}

Model load(ModelPlan plan, Device& device, const Config& config, const Log& log) {
    return load_planned(std::move(plan), device, config, 1, log,
                        terminal_progress(kName, "loading"));
}

AnswerForm answer_form(const RunFlags& flags, const Tokenizer* tokenizer) {
    if (flags.is_json) return AnswerForm::json;
    return flags.print_ids || !tokenizer ? AnswerForm::ids : AnswerForm::text;
}

int answer(const RunFlags& flags, const Config& config, const Log& log) {
    catch_interrupts();
    std::string text = flags.prompt_ids.empty() ? read_prompt(flags) : "";
    if (interrupted()) return interrupted_exit();

    Request request = open_request(flags, config.run, log);
    encode_prompt(request, flags, config.run, std::move(text));
    StepProfile profile, cpu_profile;
    DeviceOptions options = device_options(config);
    if (flags.is_profiled) options.profile = &profile;
    const auto device = open_device(config.device.kind, options);
    ModelPlan plan = plan_placed(request.file, *device, config, 1, log, read_host_ram());
    check_prompt(request.prompt, context_size(config.memory.max_seq, plan.config.max_positions),
                 plan.config);
    if (!bring_in(plan, *device)) return interrupted_exit();
    const Model model = load(std::move(plan), *device, config, log);
    const RunFacts facts = gather_facts(request, model, *device, config);
    SessionOptions in_session = session_of(model, config, log);
    if (flags.is_profiled) in_session.lanes.cpu_timer = &cpu_profile;
    Session session(model, *device, in_session);
    std::optional<NpyRows> dump;
    if (!flags.dump_logits.empty()) dump.emplace(flags.dump_logits, model.config.vocab);

    const Tokenizer* tokenizer = request.tokenizer.get();
    Output output;
    AnswerWriter writer(output, answer_form(flags, tokenizer), flags.print_ids || !tokenizer);
    writer.start(facts);
    Sampler sampler(facts.sampling, known_ids(tokenizer, model.config.vocab));
    GenerateOptions limits{config.run.max_tokens, request.defaults.stop_ids, flags.stop};
    if (flags.ignore_eos) limits.stop_ids.clear();
    const auto on_token = [&](const GeneratedToken& token) {
        writer.token(token);
        if (dump) dump->add(token.logits);
        if (output.is_closed()) interrupted() = true;  // nobody reads any more
    };
    const Generation generation =
        generate(session, request.prompt, sampler, tokenizer, limits, on_token,
                 terminal_progress(kName, "prompt"), interrupted());

    std::ranges::copy(cpu_profile.rows, std::back_inserter(profile.rows));
    const uint64_t hash = hash_answer(generation.ids, generation.last_logits);
    writer.finish(facts, generation, flags.print_hash ? std::optional(hash) : std::nullopt,
                  options.profile);
    if (dump) dump->finish();
    if (output.is_closed()) return interrupted_exit();
    if (flags.is_profiled && !flags.is_json)
        write_error(profile_text(profile, generation.prompt.seconds + generation.decode.seconds,
                                 facts.device.threads));
    log.info(summary_line(facts, generation));
    if (flags.print_hash && !flags.is_json)
        write_error(fmt::format("{}: hash {:016x}\n", kName, hash));
    return generation.finish == Finish::interrupted ? interrupted_exit() : 0;
}

/// A path as a shell takes it.
std::string shell_word(const std::string& path) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "0123456789_-./+:@%";
    if (path.find_first_not_of(kPlain) == path.npos) return path;
    std::string word = "'";
    for (const char c : path) word += c == '\'' ? "'\\''" : std::string(1, c);
    return word + "'";
}

Request open_chat_request(const RunFlags& flags, const RunConfig& config, const Log& log) {
    Request r = open_request(flags, config, log);
    need_tokenizer(r);
    r.chat_template = template_of(flags, *r.file);
    if (!r.chat_template)
        throw Error(fmt::format("{} has no chat template, so there is no chat with it; name one "
                                "with --template, or give it a text to go on with: hf-run {} "
                                "\"Once upon a time\"",
                                r.file->path, shell_word(r.file->path)),
                    Fault::refused);
    check_chat_tokens(*r.tokenizer, *r.chat_template, config.thinking);
    return r;
}

int start_chat(const RunFlags& flags, const Config& config, const Environment& environment,
               const Log& log) {
    refuse_chat_flags(flags);
    catch_interrupts();
    const Request request = open_chat_request(flags, config.run, log);
    const auto device = open_device(config.device.kind, device_options(config));
    ModelPlan plan = plan_placed(request.file, *device, config, 1, log, read_host_ram());
    if (!bring_in(plan, *device)) return interrupted_exit();
    const Model model = load(std::move(plan), *device, config, log);
    if (interrupted()) return interrupted_exit();
    const RunFacts facts = gather_facts(request, model, *device, config);
    Session session(model, *device, session_of(model, config, log));

    const Tokenizer& tokenizer = *request.tokenizer;
    GenerateOptions generate{config.run.max_tokens, request.defaults.stop_ids, flags.stop};
    if (flags.ignore_eos) generate.stop_ids.clear();
    Conversation conversation(
        session, tokenizer, *request.chat_template,
        {facts.sampling, known_ids(&tokenizer, model.config.vocab), generate, config.run.thinking});
    conversation.set_system(config.run.system);
    return chat({.conversation = conversation,
                 .model = facts.model,
                 .device = device_text(facts.device, facts.products),
                 .style = {knows_escapes(environment), has_colours(environment, STDOUT_FILENO)},
                 .shows_thinking = config.run.show_thinking,
                 .is_quiet = flags.common.is_quiet,
                 .history_path = history_path(environment),
                 .home = variable(environment, "HOME"),
                 .progress = [] { return terminal_progress(kName, "prompt"); }});
}

int run(int argc, char** argv) {
    const Environment environment = read_environment(environ);
    RunFlags flags;
    if (const auto exit_code = parse_run_flags(argc, argv, flags)) return *exit_code;
    const Log log = standard_error_log(kName, flags.common, environment);
    const Resolved resolved = resolve(flags, environment, log);
    if (flags.common.explain_config || flags.common.list_models) {
        Output().write(flags.common.explain_config ? explain(resolved) : list_models(resolved));
        return 0;
    }
    if (wants_chat(flags)) return start_chat(flags, resolved.config, environment, log);
    return answer(flags, resolved.config, log);
}

}  // namespace
}  // namespace hf

int main(int argc, char** argv) {
    return hf::run_tool(hf::kName, [&] { return hf::run(argc, argv); });
}
