// What the CPU engine has functions for: docs/cpu-coverage.md.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace hf {

/// Speeds that were measured somewhere, kept as a text of lines:
///   # hf-bandwidth -f all, CPU NAME, 2 threads       any number of these: said on the page
///   q4_0 i16/avx2 24.13                              a function of a format's own, GB/s
struct Speeds {
    std::string origin;                           // what the lines of # say, joined by spaces
    std::map<std::string, std::string> gb_per_s;  // by "FORMAT KIND/LEVEL", as it is spelled
};

/// Errors  hf::Error naming label and line: another number of words, no format, no function of its
///         own, no positive number, one that comes twice
Speeds parse_speeds(std::string_view text, std::string_view label);

/// The whole page, from the table of formats. It says the same on every machine, as the speeds are
/// given. Without any there are none in it.
std::string coverage_page(const Speeds& speeds = {});

}  // namespace hf
