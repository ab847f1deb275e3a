// Bytes in and out of the process, checked, without buffers of our own.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hf {

/// Standard output. Every write goes out at once, so nothing is left to flush and nothing is lost.
class Output {
  public:
    /// Errors  hf::Error with what the system said (a full disk, ...). A reader that has gone, or a
    ///         terminal that hung up, is no error: is_closed() is true from then on, and writes do
    ///         nothing.
    void write(std::string_view text);
    bool is_closed() const { return is_closed_; }

  private:
    bool is_closed_ = false;
};

/// Writes to standard error; what cannot be written there is lost. Where both outputs go to the
/// same place, a line begins a row: an answer that is not at its end gets a newline first.
void write_error(std::string_view text);

/// A whole file, or standard input for "-"; less of it once interrupted() is true.
/// Errors  hf::Error naming the path: unreadable, a folder, larger than 256 MiB
std::string read_text(const std::string& path);

/// The lines of a file, or of standard input for "-", as they come.
class LineReader {
  public:
    /// Errors  hf::Error naming the path when it cannot be opened
    explicit LineReader(const std::string& path);
    ~LineReader();
    LineReader(const LineReader&) = delete;

    /// The next line without its newline, valid until the next call; none at the end.
    /// Errors  hf::Error naming the path: unreadable, a folder; a line of more than 64 MiB
    std::optional<std::string_view> next();

    /// For messages: "FILE: line 3", the line that next() gave last.
    std::string place() const;

  private:
    std::string label_;
    int descriptor_;
    std::string buffer_;
    size_t begin_ = 0;   // of what was not given yet
    size_t number_ = 0;  // of the line given last, from 1
    bool is_read_ = false;
};

bool is_terminal(int descriptor);

/// "1 turn", "2 turns".
std::string counted(size_t n, std::string_view thing);

}  // namespace hf
