#include "libcore/run/stop_strings.h"

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/text/unicode.h"

namespace hf {
namespace {

/// Source  Knuth, Morris, Pratt: Fast Pattern Matching in Strings, SIAM J. Comput. 6 (1977)
std::vector<size_t> shorter_matches(std::string_view s) {
    std::vector<size_t> shorter(s.size() + 1, 0);
    for (size_t n = 1, k = 0; n < s.size(); ++n) {
        while (k > 0 && s[n] != s[k]) k = shorter[k];
        k += s[n] == s[k];
        shorter[n + 1] = k;
    }
    return shorter;
}

}  // namespace

StopStrings::StopStrings(const std::vector<std::string>& strings) {
    for (const std::string& s : strings) {
        if (s.empty()) throw Error("a stop string (--stop) is empty; leave it out", Fault::usage);
        if (replace_invalid_utf8(s) != s)
            throw Error(
                "a stop string (--stop) is not UTF-8, as answers are; it would never be met",
                Fault::usage);
        matchers_.push_back({s, shorter_matches(s)});
    }
}

/// True when the text now ends in the whole string. Not called again after that.
bool StopStrings::Matcher::take(char c) {
    while (matched > 0 && string[matched] != c) matched = shorter[matched];
    matched += string[matched] == c;
    return matched == string.size();
}

std::string StopStrings::push(std::string_view text) {
    if (found_) return {};
    size_t open = 0;  // bytes at the end that may become a stop string, or are one
    for (const char c : text) {
        held_ += c;
        open = 0;
        size_t stop = 0;
        for (Matcher& m : matchers_) {
            if (m.take(c)) stop = std::max(stop, m.string.size());
            open = std::max(open, m.matched);
        }
        if (stop == 0) continue;
        found_ = true;
        held_.resize(held_.size() - stop);
        return std::exchange(held_, {});
    }
    if (text.empty()) return {};
    std::string shown = held_.substr(0, held_.size() - open);
    held_.erase(0, shown.size());
    return shown;
}

std::string StopStrings::flush() {
    for (Matcher& m : matchers_) m.matched = 0;
    return std::exchange(held_, {});
}

}  // namespace hf
