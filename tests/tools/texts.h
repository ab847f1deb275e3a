// Taking apart what a tool printed.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace hf::test {

inline std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> list;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) list.push_back(line);
    return list;
}

inline bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

}  // namespace hf::test
