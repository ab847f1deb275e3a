// Bytes in and out of the process, checked, without buffers of our own.
#pragma once

#include <string>
#include <string_view>

namespace hf {

/// Standard output. Every write goes out at once, so nothing is left to flush and nothing is lost.
class Output {
  public:
    /// Errors  hf::Error with what the system said (a full disk, ...). A reader that has gone is no
    ///         error: is_closed() is true from then on, and writes do nothing.
    void write(std::string_view text);
    bool is_closed() const { return is_closed_; }

  private:
    bool is_closed_ = false;
};

/// Writes to standard error; what cannot be written there is lost.
void write_error(std::string_view text);

/// A whole file, or standard input for "-".
/// Errors  hf::Error naming the path: unreadable, a folder, larger than 256 MiB
std::string read_text(const std::string& path);

bool is_terminal(int descriptor);

}  // namespace hf
