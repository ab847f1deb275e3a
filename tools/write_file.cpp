#include "tools/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "libcore/base/error.h"

namespace hf {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const char* what, int fault) {
    throw Error(fmt::format("{}: {}: {}", path, what, std::strerror(fault)));
}

/// 0, or what went wrong.
int write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = write(descriptor, text.data(), text.size());
        if (n < 0 && errno != EINTR) return errno;
        if (n > 0) text.remove_prefix(size_t(n));
    }
    return fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno;  // EINVAL: cannot be synced
}

/// Where a chain of symbolic links ends; the path itself if it is none.
std::string target_of(const std::string& path) {
    std::error_code fault;
    const fs::path target = fs::canonical(path, fault);
    return fault ? path : target.string();
}

}  // namespace

void write_file(const std::string& path, std::string_view text, mode_t mode) {
    const std::string target = target_of(path), part = fmt::format("{}.{}.part", target, getpid());
    struct stat old;
    const bool is_there = lstat(target.c_str(), &old) == 0;
    if (is_there && !S_ISREG(old.st_mode))
        throw Error(fmt::format("{}: exists and is not a regular file; give another name", path));
    const int descriptor = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor < 0) fail(path, "cannot be created", errno);
    int fault = is_there && fchmod(descriptor, old.st_mode & mode) != 0 ? errno : 0;
    if (fault == 0) fault = write_all(descriptor, text);
    if (close(descriptor) != 0 && fault == 0) fault = errno;
    if (fault == 0 && rename(part.c_str(), target.c_str()) != 0) fault = errno;
    if (fault == 0) return;
    unlink(part.c_str());
    fail(path, "cannot be written", fault);
}

}  // namespace hf
