#include "tools/profile_output.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libcore/ops/ops_table.h"

namespace hf {
namespace {

/// Passes of one token first, then by time.
std::vector<StepTimes> sorted_rows(const StepProfile& profile) {
    std::vector<StepTimes> rows = profile.rows;
    std::ranges::sort(rows, [](const StepTimes& a, const StepTimes& b) {
        if (a.several_tokens != b.several_tokens) return b.several_tokens;
        return a.seconds > b.seconds;
    });
    return rows;
}

double seconds_of(const StepProfile& profile, bool several_tokens) {
    double sum = 0;
    for (const StepTimes& row : profile.rows)
        if (row.several_tokens == several_tokens) sum += row.seconds;
    return sum;
}

double gb_per_s(const StepTimes& row) {
    return row.seconds > 0 ? double(row.bytes) / row.seconds * 1e-9 : 0;
}

/// "gemv", and "gemv beside" for what the CPU does beside a device.
std::string op_of(const StepTimes& row) {
    return std::string(row_of(row.op).name) + (row.lane == Lane::cpu ? " beside" : "");
}

/// "(6144, 2048) mq4g256v2", or nothing.
std::string matrix_of(const StepTimes& row) {
    if (!row.codec) return "";
    return fmt::format("({}, {}) {}", row.shape.rows, row.shape.cols, row.codec->name);
}

std::string text_of(const StepTimes& row, double all_seconds, unsigned threads) {
    const double busy = row.seconds > 0 ? row.thread_seconds / row.seconds / threads : 0;
    std::string text =
        fmt::format("  {:<20} {:<28} {:>8} {:>9.2f} {:>6.1f}% {:>9.1f} {:>5.0f}%", op_of(row),
                    matrix_of(row), row.calls, row.seconds * 1e3, row.seconds / all_seconds * 100,
                    row.seconds / double(row.calls) * 1e6, busy * 100);
    if (row.bytes > 0)
        text += fmt::format(" {:>10.1f} {:>7.2f}", double(row.bytes) * 1e-6, gb_per_s(row));
    return text + "\n";
}

}  // namespace

std::string profile_text(const StepProfile& profile, double seconds, unsigned threads) {
    std::string text;
    double in_steps = 0;
    const std::vector<StepTimes> rows = sorted_rows(profile);
    for (const bool several : {false, true}) {
        const double all = seconds_of(profile, several);
        if (all == 0) continue;
        in_steps += all;
        text += fmt::format("passes of {}: {:.2f} ms in steps\n",
                            several ? "several tokens" : "one token", all * 1e3);
        text += fmt::format("  {:<20} {:<28} {:>8} {:>9} {:>7} {:>9} {:>6} {:>10} {:>7}\n", "op",
                            "matrix", "calls", "ms", "share", "us/call", "busy", "MB", "GB/s");
        for (const StepTimes& row : rows)
            if (row.several_tokens == several) text += text_of(row, all, threads);
    }
    return text + fmt::format("outside the steps: {:.2f} ms of {:.2f}\n",
                              std::max(0.0, seconds - in_steps) * 1e3, seconds * 1e3);
}

nlohmann::ordered_json profile_json(const StepProfile& profile) {
    auto list = nlohmann::ordered_json::array();
    for (const StepTimes& row : sorted_rows(profile)) {
        list.push_back(
            {{"op", row_of(row.op).name},
             {"lane", row.lane == Lane::cpu ? "cpu" : "device"},
             {"tokens", row.several_tokens ? "several" : "one"},
             {"format", row.codec ? nlohmann::ordered_json(row.codec->name) : nullptr},
             {"shape", row.codec ? nlohmann::ordered_json::array({row.shape.rows, row.shape.cols})
                                 : nlohmann::ordered_json()},
             {"calls", row.calls},
             {"seconds", row.seconds},
             {"share", row.seconds / seconds_of(profile, row.several_tokens)},
             {"thread_seconds", row.thread_seconds},
             {"bytes", row.bytes},
             {"gb_per_s", gb_per_s(row)}});
    }
    return list;
}

}  // namespace hf
