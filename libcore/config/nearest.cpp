#include "libcore/config/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace hf {
namespace {

/// The optimal string alignment distance: edits of which none touches what another one has changed.
size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < a.size(); ++i) {
        next[0] = i + 1;
        for (size_t j = 0; j < b.size(); ++j) {
            next[j + 1] = std::min({row[j] + (a[i] != b[j]), next[j] + 1, row[j + 1] + 1});
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
                next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
        }
        before.swap(row);
        row.swap(next);
    }
    return row.back();
}

/// Whether the shorter one begins the longer one, as a whole word or far enough to be telling.
bool begins(std::string_view a, std::string_view b) {
    constexpr size_t kTelling = 4;
    if (a.size() > b.size()) std::swap(a, b);
    if (a.empty() || !b.starts_with(a)) return false;
    return a.size() == b.size() || a.size() >= kTelling ||
           std::string_view("-_.").find(b[a.size()]) != std::string_view::npos;
}

std::string_view without(std::string_view name, std::string_view start) {
    return name.starts_with(start) ? name.substr(start.size()) : name;
}

}  // namespace

std::string_view nearest(std::string_view wrong, std::span<const std::string_view> candidates,
                         std::string_view start) {
    constexpr size_t kLongest = 100;  // all names are shorter
    if (wrong.size() > kLongest) return {};
    const std::string_view a = without(wrong, start);
    std::string_view found;
    size_t fewest = SIZE_MAX;
    for (const std::string_view candidate : candidates) {
        const std::string_view b = without(candidate, start);
        const size_t edits = edit_distance(a, b);
        const bool is_near = edits <= std::max(a.size(), b.size()) / 3 || begins(a, b);
        if (!is_near || edits >= fewest) continue;
        fewest = edits;
        found = candidate;
    }
    return found;
}

std::string nearest_words(std::string_view name) {
    return name.empty() ? "" : fmt::format("; the nearest is {}", name);
}

}  // namespace hf
