#include "tools/crosscheck_cpu.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libcore/base/error.h"
#include "libcore/run/crosscheck_cpu.h"
#include "tools/device_facts.h"
#include "tools/output.h"

namespace hf {
namespace {

/// "worst 1.2e-07 of 4.1e-06 allowed, in q4_0 (7, 512) row 3", or that no bit differs.
std::string worst_text(const CheckRecord& r) {
    if (r.pass && r.tol == 0) return "the same bits";
    return fmt::format("worst {:.2g} of {:.2g} allowed, in {} {}", r.worst, r.tol, r.subject,
                       r.where);
}

/// Whether a came nearer to what was allowed than b, or further past it.
bool is_worse(const CheckRecord& a, const CheckRecord& b) {
    return a.worst * b.tol > b.worst * a.tol;
}

std::string line_of(const std::vector<const CheckRecord*>& records) {
    const CheckRecord* worst = records.front();
    uint64_t n = 0;
    size_t failed = 0;
    for (const CheckRecord* r : records) {
        n += r->n;
        failed += !r->pass;
        if (is_worse(*r, *worst)) worst = r;
    }
    return fmt::format("{:12} {:18} {:4} {:12} values  {}\n", worst->check, worst->variant,
                       records.size(), n, failed ? counted(failed, "failure") : worst_text(*worst));
}

void stop_if_bad(const std::vector<CheckRecord>& records, bool fails_on_skip) {
    const auto failed = size_t(
        std::ranges::count_if(records, [](const CheckRecord& r) { return !r.pass && !r.skipped; }));
    const auto skipped = size_t(std::ranges::count_if(records, &CheckRecord::skipped));
    if (failed > 0)
        throw Error(fmt::format("{} of {} failed", failed, counted(records.size(), "check")));
    if (skipped > 0 && fails_on_skip)
        throw Error(fmt::format("{} of {} could not be made, and --no-skip was given", skipped,
                                counted(records.size(), "check")),
                    Fault::skipped);
}

}  // namespace

std::string checks_text(const std::vector<CheckRecord>& records) {
    std::vector<std::pair<std::string, std::vector<const CheckRecord*>>> lines;
    std::map<std::string, size_t> reasons;
    std::string failures;
    size_t skipped = 0;
    for (const CheckRecord& r : records) {
        if (r.skipped) {
            ++skipped;
            ++reasons[r.reason];
            continue;
        }
        if (!r.pass)
            failures += fmt::format("FAILED {}: {}; {}\n", r.name(), r.reason, worst_text(r));
        const std::string key = r.check + "/" + r.variant;
        auto line = std::ranges::find(lines, key, &decltype(lines)::value_type::first);
        if (line == lines.end()) line = lines.insert(line, {key, {}});
        line->second.push_back(&r);
    }
    std::string text;
    for (const auto& [key, of_line] : lines) text += line_of(of_line);
    for (const auto& [reason, n] : reasons)
        text += fmt::format("skipped {}: {}\n", counted(n, "check"), reason);
    return text + failures +
           fmt::format("{} made, {} skipped\n", counted(records.size() - skipped, "check"),
                       skipped);
}

std::string check_json(const CheckRecord& r) {
    return json_line({{"version", HF_VERSION},
                      {"check", "cpu"},
                      {"name", r.name()},
                      {"n", r.n},
                      {"worst", r.worst},
                      {"where", r.where},
                      {"tol", r.tol},
                      {"pass", r.pass},
                      {"skipped", r.skipped},
                      {"reason", r.reason}});
}

void check_cpu(const Config& config, const CpuCheckFlags& flags, const Log& log) {
    const CpuCheckOptions options{config.cpu.isa == "auto" ? cpu::Level::amx
                                                           : device_options(config).level};
    Output output;
    std::vector<CheckRecord> records;
    const auto keep = [&](const CheckRecord& record) {
        records.push_back(record);
        if (flags.is_json) output.write(check_json(record));
    };
    crosscheck_rotation(options, keep);
    for (const Codec& codec : codecs()) crosscheck_codec(codec, options, keep);
    if (!config.run.model.empty()) {
        cpu::ThreadPool pool(thread_count(config.cpu));
        crosscheck_model(open_model_file(config.run.model, log), options, pool, keep);
    }
    if (!flags.is_json) output.write(checks_text(records));
    stop_if_bad(records, flags.fails_on_skip);
}

}  // namespace hf
