#include "tools/write_file.h"

#include <filesystem>

#include "libcore/file/new_file.h"

namespace hf {
namespace {

/// Where a chain of symbolic links ends; the path itself if it is none.
std::string target_of(const std::string& path) {
    std::error_code fault;
    const std::filesystem::path target = std::filesystem::canonical(path, fault);
    return fault ? path : target.string();
}

}  // namespace

void write_file(const std::string& path, std::string_view text, mode_t mode) {
    NewFile file(target_of(path), /*replace=*/true, mode);
    file.write_at(0, text.data(), text.size());
    file.finish();
}

}  // namespace hf
