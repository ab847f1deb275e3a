// hf-bandwidth: products against plain reads of the same bytes, in turns. benchmarks/README.md.
#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "benchmarks/micro/windows.h"
#include "cpuexec/isa.h"
#include "cpuexec/topology.h"
#include "libcore/base/error.h"
#include "libcore/run/crosscheck_dots.h"
#include "tools/cli.h"
#include "tools/device_facts.h"
#include "tools/output.h"

namespace hf::bench {
namespace {

constexpr const char* kName = "hf-bandwidth";
constexpr const char* kSummary = "products against plain reads of the same bytes";
constexpr const char* kIntroduction =
    "hf-bandwidth                              q4_0, q4_k, mq4g256v2, q8_0: all levels of this "
    "CPU\n"
    "hf-bandwidth -f q4_k -a int8 -i avx2      one function against the plain reads\n"
    "hf-bandwidth -f q4_0 --tokens 1,8         how much more eight columns take";

struct BandwidthFlags {
    std::vector<std::string> formats = {"q4_0", "q4_k", "mq4g256v2", "q8_0"};
    std::vector<std::string> activations, levels;  // empty: all
    std::vector<size_t> tokens = {1};
    size_t rows = 12288, cols = 4096, windows = 11;
    double gb = 1.5, window_gb = 0.5;
    unsigned threads = 0;  // 0: as the tools do
    bool reads_only = false, has_small_pages = false, is_json = false;
};

std::optional<int> parse(int argc, const char* const* argv, BandwidthFlags& flags) {
    CLI::App app(kIntroduction, kName);
    app.set_help_flag("-h,--help", "This text");
    app.add_option("-f,--formats", flags.formats, "Formats; 'all' for every one")->delimiter(',');
    app.add_option("-a,--activations", flags.activations, "Of f32, i16, int8; all")
        ->delimiter(',')
        ->check(CLI::IsMember({"f32", "i16", "int8"}));
    app.add_option("-i,--isa", flags.levels, "Instruction levels; all that there are")
        ->delimiter(',')
        ->check([](const std::string& name) {
            const auto level = cpu::parse_level(name);
            if (!level)
                return name + " is no level; there are scalar, avx2, avxvnni, avx512vnni, amx";
            return cpu::cpu_has(*level) ? std::string() : "this CPU has no " + name;
        });
    app.add_option("-t,--threads", flags.threads, "Threads; one for each core");
    app.add_option("--tokens", flags.tokens, "Columns that are multiplied at once; 1")
        ->delimiter(',')
        ->check(CLI::Range(1, 512));
    app.add_option("--rows", flags.rows, "Of a matrix; 12288")->check(CLI::PositiveNumber);
    app.add_option("--cols", flags.cols, "Of a matrix; 4096")->check(CLI::PositiveNumber);
    app.add_option("--gb", flags.gb, "Matrices in all, GB; 1.5")->check(CLI::PositiveNumber);
    app.add_option("--windows", flags.windows, "Of each arm; 11")->check(CLI::PositiveNumber);
    app.add_option("--window-gb", flags.window_gb, "Read in a window; 0.5")
        ->check(CLI::PositiveNumber);
    app.add_flag("--reads-only", flags.reads_only, "No products");
    app.add_flag("--small-pages", flags.has_small_pages, "Pages of 4 KiB, not of 2 MiB");
    app.add_flag("--json", flags.is_json, "One JSON object per arm");
    return parse_flags(app, kSummary, argc, argv);
}

bool is_among(const std::vector<std::string>& names, std::string_view name) {
    return names.empty() || std::ranges::find(names, name) != names.end();
}

std::vector<const Codec*> formats_of(const BandwidthFlags& flags) {
    std::vector<const Codec*> formats;
    for (const std::string& name : flags.formats) {
        if (name == "all")
            for (const Codec& codec : codecs()) formats.push_back(&codec);
        else if (const Codec* codec = codec_by_name(name))
            formats.push_back(codec);
        else
            throw Error(
                fmt::format("--formats: '{}' is no format; docs/formats.md lists them", name),
                Fault::usage);
    }
    return formats;
}

/// The plain reads, and then every function of the format that was asked for.
std::vector<Arm> arms_of(const BandwidthFlags& flags, const Matrices& matrices,
                         cpu::ThreadPool& pool) {
    std::vector<Arm> arms = {sequential_read(matrices, cpu::detect_level(), pool),
                             four_stream_read(matrices, cpu::detect_level(), pool)};
    if (flags.reads_only) return arms;
    for (const OwnDot& own : own_dots(matrices.codec())) {
        if (!cpu::cpu_has(own.level) || !is_among(flags.activations, name(own.activations)) ||
            !is_among(flags.levels, cpu::name(own.level)))
            continue;
        for (size_t tokens : flags.tokens) {
            arms.push_back(products(matrices, own.level, own.activations, tokens, pool));
            if (tokens > 1) arms.back().name += fmt::format(" x{}", tokens);
        }
    }
    return arms;
}

/// What was measured of one arm, with the reads of the same rounds.
struct Result {
    std::string format, arm;
    Spread gb_per_s, of_sequential, of_best_read;
    double operations_per_s;  // at the median
    size_t windows_lost;
    uint64_t dropped, dispatches;
};

Result result_of(const Codec& codec, const Arm& arm, std::span<const std::vector<Window>> windows,
                 size_t a) {
    const size_t best_read = speed_of(windows[1]).median > speed_of(windows[0]).median ? 1 : 0;
    Result r{.format = std::string(codec.name),
             .arm = arm.name,
             .gb_per_s = speed_of(windows[a]),
             .of_sequential = ratio_of(windows[a], windows[0]),
             .of_best_read = ratio_of(windows[a], windows[best_read]),
             .operations_per_s = 0,
             .windows_lost = 0,
             .dropped = 0,
             .dispatches = 0};
    r.operations_per_s = r.gb_per_s.median * 1e9 / double(arm.bytes) * double(arm.operations);
    r.windows_lost = windows[a].size() - r.gb_per_s.count;
    for (const Window& w : windows[a]) {
        r.dropped += w.dropped;
        r.dispatches += w.kept + w.dropped;
    }
    return r;
}

std::string text_of(const Result& r) {
    if (r.gb_per_s.count == 0)
        return fmt::format("{:12} {:22} was disturbed in all of {} windows\n", r.format, r.arm,
                           r.windows_lost);
    const auto percent = [](const Spread& s) {
        return fmt::format("{:4.0f} ({:3.0f} .. {:3.0f})", 100 * s.median, 100 * s.lowest,
                           100 * s.highest);
    };
    return fmt::format("{:12} {:22} {:6.2f} ({:6.2f} .. {:6.2f})  {}  {}  {:7.1f}  {}/{}, {}\n",
                       r.format, r.arm, r.gb_per_s.median, r.gb_per_s.lowest, r.gb_per_s.highest,
                       percent(r.of_sequential), percent(r.of_best_read), r.operations_per_s / 1e9,
                       r.dropped, r.dispatches, r.windows_lost);
}

std::string json_of(const Result& r, const BandwidthFlags& flags, const DeviceInfo& device) {
    const auto spread = [](const Spread& s) {
        return nlohmann::ordered_json{{"median", s.median},
                                      {"lowest", s.lowest},
                                      {"highest", s.highest},
                                      {"windows", s.count}};
    };
    return json_line({{"device", device.name},
                      {"threads", device.threads},
                      {"rows", flags.rows},
                      {"cols", flags.cols},
                      {"matrices_gb", flags.gb},
                      {"page_bytes", flags.has_small_pages ? 4096 : 2 << 20},
                      {"format", r.format},
                      {"arm", r.arm},
                      {"gb_per_s", spread(r.gb_per_s)},
                      {"of_sequential_read", spread(r.of_sequential)},
                      {"of_best_read", spread(r.of_best_read)},
                      {"operations_per_s", r.operations_per_s},
                      {"dispatches", r.dispatches},
                      {"dropped_dispatches", r.dropped},
                      {"lost_windows", r.windows_lost}});
}

std::string heading(const BandwidthFlags& flags, const DeviceInfo& device) {
    return fmt::format(
        "{}, {} thread{}; matrices of {} x {}, {:.2f} GB in all, pages of {}; {} windows of {:.2f} "
        "GB for each arm, in turns\n"
        "format       arm                    GB/s                      % of sequential   % of "
        "best read    Gop/s  dropped of dispatches, lost windows\n",
        device.name, device.threads, device.threads == 1 ? "" : "s", flags.rows, flags.cols,
        flags.gb, flags.has_small_pages ? "4 KiB" : "2 MiB", flags.windows, flags.window_gb);
}

std::vector<Result> measure(const BandwidthFlags& flags, const Codec& codec, const Arena& arena,
                            cpu::ThreadPool& pool) {
    if (flags.cols % cols_unit(codec) != 0)
        throw Error(fmt::format("--cols: {} is no multiple of {}, as {} needs it", flags.cols,
                                cols_unit(codec), codec.name),
                    Fault::usage);
    const Matrices matrices(codec, {flags.rows, flags.cols}, arena);
    const std::vector<Arm> arms = arms_of(flags, matrices, pool);
    const double dispatches = std::max(1.0, flags.window_gb * 1e9 / double(matrices.bytes()));
    const auto windows = measure_in_turns(arms, flags.windows, size_t(dispatches));
    std::vector<Result> results;
    for (size_t a = 0; a < arms.size(); ++a)
        results.push_back(result_of(codec, arms[a], windows, a));
    return results;
}

int run(int argc, char** argv) {
    BandwidthFlags flags;
    if (const auto exit_code = parse(argc, argv, flags)) return *exit_code;
    const std::vector<const Codec*> formats = formats_of(flags);
    cpu::ThreadPool pool(flags.threads > 0 ? flags.threads : cpu::default_threads());
    DeviceOptions options;
    options.threads = pool.size();
    options.level = cpu::detect_level();
    const DeviceInfo device = open_device("host", options)->info();
    Output output;
    if (!flags.is_json) output.write(heading(flags, device));
    const Arena arena(size_t(flags.gb * 1e9), !flags.has_small_pages);
    for (const Codec* codec : formats)
        for (const Result& result : measure(flags, *codec, arena, pool))
            output.write(flags.is_json ? json_of(result, flags, device) : text_of(result));
    return 0;
}

}  // namespace
}  // namespace hf::bench

int main(int argc, char** argv) {
    return hf::run_tool(hf::bench::kName, [&] { return hf::bench::run(argc, argv); });
}
