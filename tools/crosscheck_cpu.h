// hf-crosscheck --cpu: makes the checks, prints what came of them. docs/hf-crosscheck.md describes
// the lines and objects.
#pragma once

#include <string>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/config/config.h"
#include "libcore/run/check_record.h"

namespace hf {

struct CpuCheckFlags {
    bool is_json, fails_on_skip;
};

/// All formats and rotations up to the level of cpu.isa, and the weights of the configured model if
/// one is named.
/// Errors  hf::Error: a check failed; something was skipped (Fault::skipped) where that counts;
///         what crosscheck_model() refuses
void check_cpu(const Config& config, const CpuCheckFlags& flags, const Log& log);

/// One line for all records of one check and variant, and one for each that failed.
std::string checks_text(const std::vector<CheckRecord>& records);
std::string check_json(const CheckRecord& record);

}  // namespace hf
