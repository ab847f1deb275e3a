// Files that are there as a whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

namespace hf {

/// Writes a file beside `path`, then gives it that name; what stood there before is replaced in
/// one step. A symbolic link stays one, its target is replaced.
///
/// mode    of a new file, before the umask; one that is replaced keeps its own, but no bit beyond
///         these
/// Errors  hf::Error with what the system said; nothing is left behind, and what stood there stays.
///         Something that is no regular file is not replaced
void write_file(const std::string& path, std::string_view text, mode_t mode);

}  // namespace hf
