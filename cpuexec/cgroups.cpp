#include "cpuexec/cgroups.h"

#include <filesystem>
#include <fstream>

namespace hf::cpu {
namespace {

namespace fs = std::filesystem;

std::string between_commas(std::string_view text) {
    return std::string(1, ',').append(text).append(1, ',');
}

bool lists(std::string_view controllers, std::string_view one) {
    return between_commas(controllers).find(between_commas(one)) != std::string::npos;
}

}  // namespace

std::vector<std::string> cgroup_folders(const SystemPaths& paths, std::string_view controller) {
    // Lines are "id:controllers:path"; v2 is the one with no controllers.
    std::ifstream lines(paths.own_cgroups);
    std::vector<std::string> folders;
    for (std::string line; std::getline(lines, line);) {
        const size_t first = line.find(':');
        const size_t second = first == line.npos ? first : line.find(':', first + 1);
        if (second == line.npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        if (!controllers.empty() && !lists(controllers, controller)) continue;
        const fs::path root = fs::path(paths.cgroup_root) / controllers;
        fs::path group = fs::path(line.substr(second + 1)).lexically_normal().relative_path();
        for (;; group = group.parent_path()) {
            folders.push_back((root / group).string());
            if (group.empty()) break;
        }
    }
    return folders;
}

}  // namespace hf::cpu
