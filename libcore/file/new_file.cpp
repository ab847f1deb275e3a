#include "libcore/file/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "libcore/base/error.h"

namespace hf {
namespace {

std::string folder_of(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path();
    return folder.empty() ? "." : folder;
}

/// Where the system shows an open file, so that it can be linked to a name.
std::string shown_as(int descriptor) {
    return fmt::format("/proc/self/fd/{}", descriptor);
}

std::string part_name(const std::string& path, int attempt) {
    return attempt == 0 ? fmt::format("{}.{}.part", path, getpid())
                        : fmt::format("{}.{}-{}.part", path, getpid(), attempt);
}

/// Old names of a process with our number must not be in the way.
constexpr int kMostNames = 1000;

/// The permissions of the file that is there, if there is one.
std::optional<unsigned> check_target(const std::string& path, bool replace) {
    struct stat old;
    if (lstat(path.c_str(), &old) != 0) return std::nullopt;
    if (!S_ISREG(old.st_mode))
        throw Error(fmt::format("{}: exists and is not a regular file; give another name", path));
    if (!replace) throw Error(fmt::format("{}: exists; --force replaces it", path), Fault::refused);
    return old.st_mode & 0777;
}

}  // namespace

NewFile::NewFile(const std::string& path, bool replace, unsigned mode)
    : path_(path), replace_(replace), mode_(mode) {
    const std::optional<unsigned> old_mode = check_target(path, replace);
    if (old_mode) mode_ &= *old_mode;
    create();
    if (old_mode) fchmod(descriptor_, mode_);  // may give back what the umask took, no more
}

void NewFile::create() {
    descriptor_ = open(folder_of(path_).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode_);
    if (descriptor_ >= 0 && access(shown_as(descriptor_).c_str(), F_OK) == 0) return;
    if (descriptor_ >= 0) close(descriptor_);  // without /proc it could never get its name
    open_named();
}

void NewFile::open_named() {
    for (int attempt = 0; attempt < kMostNames; ++attempt) {
        part_ = part_name(path_, attempt);
        descriptor_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_);
        if (descriptor_ >= 0) return;
        if (errno != EEXIST) break;
    }
    fail("cannot be created");
}

NewFile::~NewFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!part_.empty()) unlink(part_.c_str());
}

void NewFile::fail(const char* what) const {
    throw Error(fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
}

void NewFile::write_at(uint64_t offset, const void* data, size_t bytes) {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t n = pwrite(descriptor_, from, bytes, off_t(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("cannot be written");
        from += n;
        offset += uint64_t(n);
        bytes -= size_t(n);
    }
}

/// A further name for the file; false, with errno set, when the system says no.
bool NewFile::link_to(const std::string& name) const {
    return linkat(AT_FDCWD, part_.empty() ? shown_as(descriptor_).c_str() : part_.c_str(), AT_FDCWD,
                  name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

/// A name of its own, from which it can be renamed: links replace nothing.
void NewFile::name_part() {
    for (int attempt = 0; attempt < kMostNames; ++attempt) {
        const std::string name = part_name(path_, attempt);
        if (link_to(name)) {
            part_ = name;
            return;
        }
        if (errno != EEXIST) break;
    }
    fail("cannot be named");
}

/// Without leave to replace, a file that appeared meanwhile stays: link() does not overwrite. Where
/// there are no links, the check at the start has to do.
void NewFile::take_name() {
    if (!replace_) {
        if (link_to(path_)) return;
        if (errno == EEXIST) check_target(path_, false);
    }
    if (part_.empty()) name_part();
    if (rename(part_.c_str(), path_.c_str()) != 0) fail("cannot be renamed");
    part_.clear();
}

void NewFile::finish() {
    if (fsync(descriptor_) != 0) fail("cannot be synced");
    take_name();
    if (const int folder = open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        folder >= 0) {
        fsync(folder);  // not every file system can; the file itself is safe
        close(folder);
    }
}

}  // namespace hf
