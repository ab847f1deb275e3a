#include "libcore/run/find_model.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "libcore/base/error.h"

namespace hf {

namespace fs = std::filesystem;

bool is_model(const std::string& argument, std::span<const KnownModel> models) {
    const auto is_named = [&](const KnownModel& model) { return model.name == argument; };
    std::error_code unreachable;  // counts as absent, as does a prompt that is too long for a path
    return argument == "bundled" || std::any_of(models.begin(), models.end(), is_named) ||
           fs::exists(argument, unreachable);
}

std::string bundled_model(const std::string& program_folder) {
    constexpr int kFoldersAbove = 4;
    std::error_code unreachable;
    const auto is_folder = [&](const fs::path& path) {
        return fs::is_directory(path, unreachable);
    };

    fs::path folder = fs::path(program_folder).lexically_normal();
    const fs::path installed = folder.parent_path() / "share/hipfire/models/demo";
    if (is_folder(installed)) return installed;
    for (int above = 0; above <= kFoldersAbove; ++above, folder = folder.parent_path())
        if (is_folder(folder / "models/demo")) return folder / "models/demo";
    throw Error(
        fmt::format("the bundled model is not there: neither {} nor models/demo in {} or the {} "
                    "folders above; name a model with -m or run.model",
                    installed.string(), program_folder, kFoldersAbove));
}

}  // namespace hf
