// What a person asked hf-quantize to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli.h"

namespace hf {

struct QuantizeFlags {
    CommonFlags common;
    std::vector<std::string> arguments;  // IN OUT, or OUT
    std::string format;
    std::vector<std::string> keep;  // PATTERN=FORMAT
    std::string awq;                // path of the calibration text; "-" is standard input
    std::string synthetic;          // a size in place of IN
    bool may_replace = false;
    bool is_json = false;
};

/// The exit code, when --help or --version was all.
/// Errors  hf::Error(usage), also for flags that contradict each other and arguments that are too
///         few or too many
std::optional<int> parse_quantize_flags(int argc, const char* const* argv, QuantizeFlags& flags);

}  // namespace hf
