#include "tools/page.h"

#include <fmt/format.h>

#include "libcore/base/error.h"

namespace hf {
namespace {

void trim(std::string& line) {
    line.erase(line.find_last_not_of(' ') + 1);
}

}  // namespace

std::string thousands(uint64_t n) {
    std::string digits = std::to_string(n);
    for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
    return digits;
}

std::string size_text(uint64_t bytes) {
    constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024) return fmt::format("{} bytes", bytes);
    double size = double(bytes) / 1024;
    size_t unit = 0;
    for (; size >= 1023.95 && unit < 3; ++unit) size /= 1024;
    return fmt::format("{:.1f} {}", size, kUnits[unit]);
}

std::string plural(uint64_t n, std::string_view noun) {
    return fmt::format("{} {}{}", thousands(n), noun, n == 1 ? "" : "s");
}

void Page::line(std::string what, std::string_view colour) {
    trim(what);
    text += in(colour, printable(what)) + "\n";
}

void Page::fact(std::string_view name, const std::string& value) {
    text += fmt::format("  {} {}\n", in(kDim, fmt::format("{:13}", name)), printable(value));
}

std::string Page::in(std::string_view colour, std::string_view what) const {
    if (!colours || colour.empty() || what.empty()) return std::string(what);
    return fmt::format("{}{}{}", colour, what, kPlain);
}

void Page::raw_line(std::string what) {
    trim(what);
    text += what + "\n";
}

}  // namespace hf
