// How readers of files word their errors.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"

namespace hf {

/// Throws hf::Error "<path>: <what>".
template <class... Args>
[[noreturn]] void fail_file(std::string_view path, fmt::format_string<Args...> what,
                            Args&&... args) {
    throw Error(fmt::format("{}: {}", path, fmt::format(what, std::forward<Args>(args)...)));
}

/// A string out of a file as messages show it: in quotes, at most 100 bytes of it, printable().
inline std::string shown(std::string_view text) {
    constexpr size_t kMost = 100;
    return fmt::format("'{}{}'", printable(text.substr(0, kMost)),
                       text.size() > kMost ? "..." : "");
}

}  // namespace hf
