// hf-run: a prompt to text. docs/hf-run.md is its manual.

#include <unistd.h>

#include <chrono>
#include <random>

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/device/open_device.h"
#include "libcore/load/model.h"
#include "libcore/run/find_model.h"
#include "libcore/run/generate.h"
#include "libcore/run/hash.h"
#include "libcore/run/load_placed.h"
#include "libcore/run/model_defaults.h"
#include "libcore/run/npy.h"
#include "libcore/run/open_tokenizer.h"
#include "libcore/text/chat.h"
#include "tools/answer.h"
#include "tools/device_facts.h"
#include "tools/hf_run_flags.h"
#include "tools/profile_output.h"
#include "tools/signals.h"

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

/// The text of the prompt: argument, file or pipe.
std::string read_prompt(const RunFlags& flags) {
    if (!flags.file.empty()) return read_prompt_file(flags.file);
    if (!flags.arguments.empty() && flags.arguments[0] != "-") return flags.arguments[0];
    if (flags.arguments.empty() && is_terminal(STDIN_FILENO))
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

/// Progress of a long prompt, for a person who waits.
Progress terminal_progress() {
    if (!is_terminal(STDERR_FILENO)) return {};
    using Clock = std::chrono::steady_clock;
    return [start = Clock::now(), is_shown = false](size_t done, size_t total) mutable {
        if (Clock::now() - start > std::chrono::seconds(1) && done < total) {
            write_error(fmt::format("\r{}: prompt, {} of {} tokens", kName, done, total));
            is_shown = true;
        }
        if (is_shown && (done == total || interrupted())) write_error("\r\x1b[K");
    };
}

/// Everything that is known before a weight is read.
struct Request {
    std::shared_ptr<const ModelFile> file;
    std::unique_ptr<Tokenizer> tokenizer;  // null: the model has none
    ModelDefaults defaults;
    std::vector<int32_t> prompt;
    std::string_view chat_template;  // empty: raw text or ids
};

void encode_prompt(Request& r, const RunFlags& flags, const RunConfig& config, std::string text) {
    if (!flags.prompt_ids.empty()) {
        r.prompt = parse_ids(flags.prompt_ids);
        return;
    }
    if (!r.tokenizer)
        throw Error(fmt::format("{} has no tokenizer, so it cannot read text; give the prompt as "
                                "--prompt-ids 1,2,3",
                                r.file->path),
                    Fault::refused);
    const ChatTemplate* chat = nullptr;
    if (!flags.is_raw)
        chat = choose_template(r.file->path, r.file->chat_template, architecture_of(*r.file).name);
    if (!chat) {
        r.prompt = encode_raw(*r.tokenizer, text);
        return;
    }
    r.chat_template = chat->name;
    r.prompt = encode_chat(*r.tokenizer, *chat, {std::move(text), config.system, config.thinking});
}

Request open_request(const RunFlags& flags, const RunConfig& config, std::string text,
                     const Log& log) {
    Request r;
    const std::string path = config.model.empty() ? bundled_model(program_folder()) : config.model;
    r.file = std::make_shared<ModelFile>(open_model_file(path, log));
    r.tokenizer = open_tokenizer(*r.file);
    r.defaults = read_model_defaults(*r.file, r.tokenizer.get());
    encode_prompt(r, flags, config, std::move(text));
    return r;
}

RunFacts gather_facts(const Request& r, const Model& model, const Device& device,
                      const Config& config) {
    return {
        .model = r.file->path,
        .architecture = std::string(model.arch->name),
        .container = std::string(r.file->container),
        .device = device.info(),
        .kv_cache = config.memory.kv_cache,
        .max_seq = context_size(config.memory.max_seq, model.config.max_positions),
        .chat_template = std::string(r.chat_template),
        .sampling = sampling_options(config.sampling, r.defaults.sampling,
                                     config.run.seed.value_or(std::random_device()())),
        .prompt_tokens = uint32_t(r.prompt.size()),
        .prompt_hash = hash_answer(r.prompt, {}),
    };
}

AnswerForm answer_form(const RunFlags& flags, const Tokenizer* tokenizer) {
    if (flags.is_json) return AnswerForm::json;
    return flags.print_ids || !tokenizer ? AnswerForm::ids : AnswerForm::text;
}

int answer(const RunFlags& flags, const Config& config, const Log& log) {
    catch_interrupts();
    std::string text = flags.prompt_ids.empty() ? read_prompt(flags) : "";
    if (interrupted()) return kInterruptedExit;

    const Request request = open_request(flags, config.run, std::move(text), log);
    StepProfile profile;
    DeviceOptions options = device_options(config);
    if (flags.is_profiled) options.profile = &profile;
    const auto device = open_device(config.device.kind, options);
    const Model model = load_placed(request.file, *device, config, 1, log);
    const RunFacts facts = gather_facts(request, model, *device, config);
    Session session(model, *device, {facts.max_seq, kv_type_by_name(facts.kv_cache), 1});
    check_prompt(request.prompt, session);
    std::optional<NpyRows> dump;
    if (!flags.dump_logits.empty()) dump.emplace(flags.dump_logits, model.config.vocab);

    const Tokenizer* tokenizer = request.tokenizer.get();
    Output output;
    AnswerWriter writer(output, answer_form(flags, tokenizer), flags.print_ids || !tokenizer);
    writer.start(facts);
    Sampler sampler(facts.sampling, known_ids(tokenizer, model.config.vocab));
    GenerateOptions limits{config.run.max_tokens, request.defaults.stop_ids};
    if (flags.ignore_eos) limits.stop_ids.clear();
    const auto on_token = [&](const GeneratedToken& token) {
        writer.token(token);
        if (dump) dump->add(token.logits);
        if (output.is_closed()) interrupted() = true;  // nobody reads any more
    };
    const Generation generation = generate(session, request.prompt, sampler, tokenizer, limits,
                                           on_token, terminal_progress(), interrupted());

    const uint64_t hash = hash_answer(generation.ids, generation.last_logits);
    writer.finish(facts, generation, flags.print_hash ? std::optional(hash) : std::nullopt,
                  options.profile);
    if (dump) dump->finish();
    if (output.is_closed()) return 0;
    if (flags.is_profiled && !flags.is_json)
        write_error(profile_text(profile, generation.prompt.seconds + generation.decode.seconds,
                                 facts.device.threads));
    log.info(summary_line(facts, generation));
    if (flags.print_hash && !flags.is_json)
        write_error(fmt::format("{}: hash {:016x}\n", kName, hash));
    return generation.finish == Finish::interrupted ? kInterruptedExit : 0;
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
    return answer(flags, resolved.config, log);
}

}  // namespace
}  // namespace hf

int main(int argc, char** argv) {
    return hf::run_tool(hf::kName, [&] { return hf::run(argc, argv); });
}
