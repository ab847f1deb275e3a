// MappedFile: one file's bytes, mapped read-only. Nothing is read until it is touched.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace hf {

/// Owns a read-only mapping of a whole file. Moving it keeps bytes() and path() where they are; a
/// MappedFile that was moved from may only be assigned or destroyed.
class MappedFile {
  public:
    /// Maps the file. The page behind its last byte may end right there: read nothing beyond.
    /// Errors  hf::Error naming the path: missing, unreadable, empty, or no regular file (a folder,
    ///         a pipe, a device, a socket)
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(MappedFile&&) noexcept;
    MappedFile& operator=(MappedFile&&) noexcept;

    const std::string& path() const;           // as it was given
    std::span<const std::byte> bytes() const;  // page-aligned, never empty

  private:
    struct Mapping;
    std::unique_ptr<Mapping> mapping_;
};

/// Makes a file that is cut short while it is mapped end the program with a sentence instead of a
/// bus error: touching a page that is gone writes "<path>: the file became shorter while it was in
/// use" to standard error and exits with 1. Other bus errors take their usual way. For tools, once
/// at their start; more calls do nothing. (A cut inside the last page shows as zeros: the kernel
/// reports lost pages, not lost bytes.)
void report_shrunk_files();

}  // namespace hf
