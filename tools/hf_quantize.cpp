// hf-quantize: a model to an HFQ file. docs/hf-quantize.md is its manual.

#include <unistd.h>

#include <random>

#include <fmt/format.h>

#include "cpuexec/topology.h"
#include "libcore/base/error.h"
#include "libcore/quantize/quantize_model.h"
#include "libcore/quantize/synthetic.h"
#include "libcore/run/open_tokenizer.h"
#include "tools/device_facts.h"
#include "tools/hf_quantize_flags.h"
#include "tools/model_argument.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/quantize_output.h"
#include "tools/signals.h"

namespace hf {
namespace {

constexpr const char* kName = "hf-quantize";

SourceModel open_source(const QuantizeFlags& flags, const Config& config, const Log& log) {
    if (flags.synthetic.empty())
        return open_source_model(
            std::make_shared<ModelFile>(open_model_file(model_path(config), log)), log);
    return synthetic_model(flags.synthetic, config.run.seed.value_or(std::random_device()()),
                           open_model_file(model_path(config), log));
}

/// Fewer ids when interrupted: whoever works on them asks for that.
std::vector<int32_t> read_calibration(const std::string& path, const ModelFile& file) {
    const auto tokenizer = open_tokenizer(file);
    if (!tokenizer)
        throw Error(fmt::format("--awq: {} has no tokenizer, so it cannot read text", file.path),
                    Fault::refused);
    return tokenizer->encode(read_text(path), {.parse_special = true, .add_special = false});
}

int stop_early(const Log& log) {
    log.warn("interrupted; nothing was written");
    return interrupted_exit();
}

int quantize(const QuantizeFlags& flags, const Config& config, const Log& log) {
    catch_interrupts();
    Policy policy{&format_by_name(flags.format), {}};
    for (const std::string& keep : flags.keep) policy.keep.push_back(parse_keep(keep));
    const SourceModel model = open_source(flags, config, log);
    const DeviceOptions options = device_options(config);

    QuantizeFacts facts{
        .source = model.label, .output = flags.arguments.back(), .format = policy.format->name};
    std::optional<SquareSums> sums = SquareSums();
    if (!flags.awq.empty()) {
        const std::vector<int32_t> ids = read_calibration(flags.awq, *model.file);
        if (interrupted()) return stop_early(log);
        facts.calibration_tokens = ids.size();
        sums = sum_squares(model.file, ids, options, log, terminal_progress(kName, "calibrating"),
                           interrupted());
        if (!sums) return stop_early(log);
    }
    const std::vector<OutputTensor> tensors = plan_output(model, policy, *sums);
    cpu::ThreadPool pool(options.threads ? options.threads : cpu::default_threads());
    facts.processor = open_device("host", {.threads = 1})->info().name;
    facts.threads = pool.size();
    const auto report = quantize_model(model, tensors, facts.output, flags.may_replace, pool,
                                       terminal_progress(kName, "writing"), interrupted());
    if (!report) return stop_early(log);
    if (flags.is_json)
        Output().write(quantize_json(facts, *report));
    else if (!flags.common.is_quiet)
        Output().write(quantize_text(facts, *report));
    return 0;
}

int run(int argc, char** argv) {
    const Environment environment = read_environment(environ);
    QuantizeFlags flags;
    if (const auto exit_code = parse_quantize_flags(argc, argv, flags)) return *exit_code;
    const Log log = standard_error_log(kName, flags.common, environment);
    const Resolved resolved = resolve_config(config_sources(flags.common, environment), log);
    if (const std::string answer = answer_of(flags.common, resolved); !answer.empty()) {
        Output().write(answer);
        return 0;
    }
    return quantize(flags, resolved.config, log);
}

}  // namespace
}  // namespace hf

int main(int argc, char** argv) {
    return hf::run_tool(hf::kName, [&] { return hf::run(argc, argv); });
}
