#include "tools/chat_input.h"

#include <fmt/format.h>

#include <algorithm>

namespace hf {
namespace {

constexpr std::string_view kQuotes = "\"\"\"", kBlank = " \t";

std::string_view trimmed(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

}  // namespace

bool MessageLines::add(std::string_view line) {
    if (is_empty() && trimmed(line).starts_with(kQuotes)) {
        is_block_ = true;
        line.remove_prefix(line.find(kQuotes) + kQuotes.size());
        if (trimmed(line).empty()) return false;  // the text begins with the next line
    }
    const bool is_last = is_block_ ? trimmed(line).ends_with(kQuotes) : !line.ends_with('\\');
    if (is_block_ && is_last)
        line = line.substr(0, line.rfind(kQuotes));
    else if (!is_last && !is_block_)
        line.remove_suffix(1);
    if (!is_block_ || !is_last || !line.empty()) lines_.emplace_back(line);
    return is_last;
}

std::string MessageLines::take() {
    const std::vector<std::string> lines = std::move(lines_);
    *this = {};
    return fmt::format("{}", fmt::join(lines, "\n"));
}

CommandLine parse_command(std::string_view message) {
    if (!message.starts_with('/') || message.find('\n') != message.npos) return {};
    const size_t end = std::min(message.find_first_of(kBlank), message.size());
    return {message.substr(0, end), trimmed(message.substr(end))};
}

}  // namespace hf
