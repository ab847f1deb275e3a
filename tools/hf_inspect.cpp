// hf-inspect: what is in a model, and what would be refused. docs/hf-inspect.md is its manual.

#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cpuexec/topology.h"
#include "libcore/run/coverage.h"
#include "tools/device_facts.h"
#include "tools/inspect_output.h"
#include "tools/model_argument.h"
#include "tools/output.h"

namespace hf {
namespace {

constexpr const char* kName = "hf-inspect";
constexpr const char* kIntroduction =
    "hf-inspect              what is in the bundled model\n"
    "hf-inspect MODEL        another one: a folder, a GGUF or HFQ file, a name of hipfire.toml\n"
    "Reads headers only. What hf-run would refuse is at the end, one line each.";

struct InspectFlags {
    CommonFlags common;
    std::string model;
    bool lists_tensors = false, scans = false, is_json = false, shows_coverage = false;
};

std::optional<int> parse_inspect_flags(int argc, const char* const* argv, InspectFlags& flags) {
    CLI::App app(kIntroduction, kName);
    app.set_help_flag("-h,--help", "This text");
    app.add_option("model", flags.model, "");
    app.add_flag("--tensors", flags.lists_tensors, "List every tensor");
    app.add_flag("--scan", flags.scans, "Read all weights and count those that are not finite");
    app.add_flag("--json", flags.is_json, "One JSON object");
    app.add_flag("--coverage", flags.shows_coverage,
                 "Of all formats, which instruction levels have functions of their own");
    add_common_flags(app, flags.common);
    if (const auto exit_code = parse_flags(app, argc, argv)) return exit_code;
    take_model(flags.common, flags.model);
    return std::nullopt;
}

WeightScan scan(const ModelFile& file, const CpuConfig& config) {
    cpu::ThreadPool pool(config.threads > 0 ? config.threads : cpu::default_threads());
    const bool is_shown = is_terminal(STDERR_FILENO);
    return scan_weights(file, pool, [&](uint64_t done, uint64_t total) {
        if (is_shown)
            write_error(done < total ? fmt::format("\r{}: {} % scanned", kName, 100 * done / total)
                                     : std::string("\r\x1b[K"));
    });
}

bool is_colourful(const Environment& environment) {
    for (const auto& [name, value] : environment)
        if (name == "NO_COLOR" && !value.empty()) return false;
    return is_terminal(STDOUT_FILENO);
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
        output.write(coverage_page());
        return 0;
    }
    const Config& config = resolved.config;
    const ModelFile file = open_model_file(model_path(config), log);
    const Inspection inspection =
        inspect(file, {kv_type_by_name(config.memory.kv_cache), config.memory.max_seq});
    std::optional<WeightScan> found;
    if (flags.scans) found = scan(file, config.cpu);
    const InspectView view{inspection, found ? &*found : nullptr, config.memory.kv_cache,
                           flags.lists_tensors};
    output.write(flags.is_json ? inspect_json(view)
                               : inspect_text(view, is_colourful(environment)));
    return 0;
}

}  // namespace
}  // namespace hf

int main(int argc, char** argv) {
    return hf::run_tool(hf::kName, [&] { return hf::run(argc, argv); });
}
