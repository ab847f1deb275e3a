// What the CPU engine has functions for: docs/cpu-coverage.md.
#pragma once

#include <string>

namespace hf {

/// The whole page, from the table of formats. It says the same on every machine.
std::string coverage_page();

}  // namespace hf
