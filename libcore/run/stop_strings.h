// StopStrings: ends a text where one of some strings begins, however the text is cut into pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hf {

/// All that push() and flush() return, put together, is the text up to the string that is complete
/// first; of strings that are complete at the same byte the longest counts. Nothing is returned
/// that may still become one of them. Without strings every text passes as it is.
class StopStrings {
  public:
    /// Errors  hf::Error(usage) for a string that is empty, or no UTF-8: it could never be met
    explicit StopStrings(const std::vector<std::string>& strings);

    /// What may be shown now. Texts that are UTF-8 come out as UTF-8.
    ///
    /// text  the next piece; what comes behind a stop string is dropped
    std::string push(std::string_view text);

    /// The end of the text: what was held back, since it cannot become a stop string any more.
    std::string flush();

    /// Whether a stop string came. push() and flush() return nothing from then on.
    bool found() const { return found_; }

  private:
    /// One string, and how far the text's end agrees with its beginning.
    struct Matcher {
        std::string string;
        std::vector<size_t>
            shorter;  // [n]: the longest beginning of it that ends its first n bytes
        size_t matched = 0;
        bool take(char c);
    };
    std::vector<Matcher> matchers_;
    std::string held_;
    bool found_ = false;
};

}  // namespace hf
