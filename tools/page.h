// A page of tables for people: lines, some of them coloured, and numbers in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hf {

inline constexpr std::string_view kRed = "\x1b[31m", kGreen = "\x1b[32m", kYellow = "\x1b[33m",
                                  kBlue = "\x1b[34m", kDim = "\x1b[2m", kPlain = "\x1b[0m";

/// "11,316,488"
std::string thousands(uint64_t n);

/// "21.6 MiB"
std::string size_text(uint64_t bytes);

/// "1 layer", "12 layers"
std::string plural(uint64_t n, std::string_view noun);

/// Control characters in what is added become '?'.
struct Page {
    bool colours;
    std::string text = {};

    void line(std::string what, std::string_view colour = {});
    void fact(std::string_view name, const std::string& value);
    /// The text in a colour, for the inside of a line that is added with raw_line().
    std::string in(std::string_view colour, std::string_view what) const;
    /// A line of our own making, colours and all.
    void raw_line(std::string what);
};

}  // namespace hf
