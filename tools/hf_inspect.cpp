// hf-inspect: what is in a model, and what would be refused. docs/hf-inspect.md is its manual.

#include <unistd.h>

#include <charconv>
#include <sstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "libcore/base/error.h"
#include "libcore/run/check_plan.h"
#include "libcore/run/coverage.h"
#include "libcore/run/memory_speed.h"
#include "tools/device_facts.h"
#include "tools/inspect_output.h"
#include "tools/model_argument.h"
#include "tools/output.h"
#include "tools/progress.h"

namespace hf {
namespace {

constexpr const char* kName = "hf-inspect";
constexpr const char* kSummary = "what is in a model, and what would be refused";
constexpr const char* kIntroduction =
    "hf-inspect              what is in the bundled model\n"
    "hf-inspect MODEL        another one: a folder, a GGUF or HFQ file, a name of hipfire.toml\n"
    "hf-inspect MODEL --vram-mb 8192 --exec cpu    where it would go on such a card\n"
    "Reads headers only. What hf-run would refuse is at the end, one line each.";

struct InspectFlags {
    CommonFlags common;
    std::string model;
    std::string speeds;  // path of measured GB/s
    std::optional<Bandwidth> bandwidth;
    bool lists_tensors = false, scans = false, is_json = false, shows_coverage = false;
    bool shows_steps = false, sweeps = false, loads = false;
};

/// "vram=600,link=27,cpu=45" in GB/s, any of them, each once.
Bandwidth parse_bandwidth(const std::string& text) {
    constexpr double kLeast = 1e-3, kMost = 1e6;
    Bandwidth bandwidth;
    std::istringstream list(text + ",");  // so that an item behind the last comma is one, too
    for (std::string item; std::getline(list, item, ',');) {
        const size_t at = std::min(item.find('='), item.size());
        double* const speed = at == 4 && item.starts_with("vram")   ? &bandwidth.vram
                              : at == 4 && item.starts_with("link") ? &bandwidth.link
                              : at == 3 && item.starts_with("cpu")  ? &bandwidth.cpu
                                                                    : nullptr;
        double value = 0;
        const char* const end = item.data() + item.size();
        const auto read = speed ? std::from_chars(item.data() + at + 1, end, value)
                                : std::from_chars_result{item.data(), std::errc::invalid_argument};
        if (read.ec != std::errc() || read.ptr != end || !(value >= kLeast && value <= kMost))
            throw Error(
                fmt::format("flag --bandwidth: '{}' is none of vram=X, link=X, cpu=X with X "
                            "in GB/s from {} to {}",
                            one_line(item), kLeast, kMost),
                Fault::usage);
        if (*speed > 0)
            throw Error(
                fmt::format("flag --bandwidth: {} comes twice; leave one out", item.substr(0, at)),
                Fault::usage);
        *speed = value * 1e9;
    }
    return bandwidth;
}

std::optional<int> parse_inspect_flags(int argc, const char* const* argv, InspectFlags& flags) {
    CLI::App app(kIntroduction, kName);
    app.set_help_flag("-h,--help", "This text");
    app.add_option("model", flags.model, "");
    app.add_flag("--tensors", flags.lists_tensors, "List every tensor");
    app.add_flag("--scan", flags.scans, "Read all weights and count those that are not finite");
    app.add_flag("--steps", flags.shows_steps, "List who runs which steps, and what is copied");
    app.add_flag("--sweep", flags.sweeps, "A table over all numbers of layers on the device");
    std::string bandwidth;
    const CLI::Option* speeds =
        app.add_option("--bandwidth", bandwidth,
                       "GB/s to predict tokens a second from: vram=X,link=X,cpu=X; cpu: measured")
            ->type_name("LIST");
    app.add_flag("--loaded", flags.loads, "Load the model too, and compare with the plan");
    app.add_flag("--json", flags.is_json, "One JSON object");
    app.add_flag("--coverage", flags.shows_coverage,
                 "Of all formats, which instruction levels have functions of their own");
    for (const char* other : {"model", "--tensors", "--scan", "--steps", "--sweep", "--bandwidth",
                              "--loaded", "--json"})
        app.get_option("--coverage")
            ->excludes(app.get_option(other));  // which a page has no use for
    app.add_option("--speeds", flags.speeds, "Measured GB/s for --coverage")
        ->type_name("PATH")
        ->needs(app.get_option("--coverage"));
    add_common_flags(app, flags.common, {"run.model", "memory.", "device.", "cpu."});
    if (const auto exit_code = parse_flags(app, kSummary, argc, argv)) return exit_code;
    if (speeds->count() > 0) flags.bandwidth = parse_bandwidth(bandwidth);
    take_model(flags.common, flags.model);
    return std::nullopt;
}

WeightScan scan(const ModelFile& file, const CpuConfig& config) {
    cpu::ThreadPool pool(thread_count(config));
    return scan_weights(file, pool, terminal_progress(kName, "scanning"));
}

/// What is printed, and how the program ends then.
struct Look {
    std::string page;
    int exit_code = 0;
};

/// The device of the configuration; where there is none, that is a refusal, and the exit code's.
std::unique_ptr<Device> open_for_plan(Inspection& inspection, const Config& config, Look& look) {
    try {
        return open_device(config.device.kind, device_options(config));
    } catch (const Error& error) {
        if (error.fault() != Fault::no_device) throw;
        inspection.refusals.push_back({Stops::load, error.what()});
        look.exit_code = int(error.fault());
        return nullptr;
    }
}

/// Plans for 0 layers on the device, 1, ... all.
std::vector<PlanFacts> sweep(const std::shared_ptr<const ModelFile>& file, const Device& device,
                             Config config, uint32_t layers) {
    std::vector<PlanFacts> plans;
    for (uint32_t stay = 0; stay <= layers; ++stay) {
        config.memory.gpu_layer_budget = int32_t(stay);
        plans.push_back(plan_facts(file, device, config));
    }
    return plans;
}

void set_speeds(PlanView& view, const std::optional<Bandwidth>& speeds, const CpuConfig& config) {
    if (!speeds) return;
    view.bandwidth = *speeds;
    if (view.bandwidth.cpu > 0) return;
    cpu::ThreadPool pool(thread_count(config));
    view.bandwidth.cpu = measure_read_speed(pool);
    view.is_measured = true;
}

Look look_at(const InspectFlags& flags, const Config& config, const Log& log, bool colours) {
    const auto file = std::make_shared<const ModelFile>(open_model_file(model_path(config), log));
    Inspection inspection =
        inspect(*file, {kv_type_by_name(config.memory.kv_cache), config.memory.max_seq});
    std::optional<WeightScan> found;
    if (flags.scans) found = scan(*file, config.cpu);
    InspectView view{inspection, nullptr, found ? &*found : nullptr, config.memory.kv_cache,
                     flags.lists_tensors};
    Look look;
    const auto device =
        inspection.allows(Stops::load) ? open_for_plan(inspection, config, look) : nullptr;
    const auto with_page = [&] {
        look.page = flags.is_json ? inspect_json(view) : inspect_text(view, colours);
        return look;
    };
    if (!device) return with_page();
    if (flags.sweeps && device->info().in_place)
        throw Error(
            "flag --sweep: there is no graphics card whose layers could be counted; name the size "
            "of one that the processor plays (--vram-mb 8192)",
            Fault::usage);

    const PlanFacts facts = plan_facts(file, *device, config);
    check_placement(facts.plan);
    if (!facts.refusal.empty()) inspection.refusals.push_back({Stops::load, facts.refusal});
    PlanView plan{facts};
    plan.shows_steps = flags.shows_steps;
    set_speeds(plan, flags.bandwidth, config.cpu);
    if (flags.sweeps) plan.sweep = sweep(file, *device, config, facts.plan.config.n_layers);
    if (flags.loads) {
        check_loaded(facts, *device, config, log);
        plan.was_loaded = true;
    }
    view.plan = &plan;
    return with_page();
}

int run(int argc, char** argv) {
    const Environment environment = read_environment(environ);
    InspectFlags flags;
    if (const auto exit_code = parse_inspect_flags(argc, argv, flags)) return *exit_code;
    const Log log = standard_error_log(kName, flags.common, environment);
    const Resolved resolved = resolve_config(config_sources(flags.common, environment), log);
    Output output;
    if (const std::string answer = answer_of(flags.common, resolved); !answer.empty()) {
        output.write(answer);
        return 0;
    }
    if (flags.shows_coverage) {
        const bool has_speeds = !flags.speeds.empty();
        output.write(coverage_page(has_speeds ? parse_speeds(read_text(flags.speeds), flags.speeds)
                                              : Speeds()));
        return 0;
    }
    const Look look = look_at(flags, resolved.config, log, has_colours(environment, STDOUT_FILENO));
    output.write(look.page);
    return look.exit_code;
}

}  // namespace
}  // namespace hf

int main(int argc, char** argv) {
    return hf::run_tool(hf::kName, [&] { return hf::run(argc, argv); });
}
