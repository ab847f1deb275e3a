#include "tools/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "tools/page.h"
#include "tools/signals.h"

namespace hf {
namespace {

/// Writes everything; false with errno set when the system says no. A pipe that is full and does
/// not block (some parents make them so) is waited for.
bool write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = write(descriptor, text.data(), text.size());
        if (n >= 0) {
            text.remove_prefix(size_t(n));
        } else if (errno == EAGAIN) {
            pollfd ready{descriptor, POLLOUT, 0};
            poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/// What a write says when nobody will read any more.
bool means_gone(int fault, int descriptor) {
    struct stat s {};
    return fault == EPIPE ||
           (fault == EIO && fstat(descriptor, &s) == 0 && S_ISCHR(s.st_mode));  // a terminal
}

/// A pipe with a name does not wait for its writer: read_or_stop does.
int open_to_read(const std::string& path) {
    return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/// As read(), of something that may not have come yet. Once interrupted() is true it is at its end.
ssize_t read_or_stop(int descriptor, char* to, size_t most) {
    constexpr int kMs = 100;  // a signal may come just before a wait, so none is long
    while (!interrupted()) {
        pollfd ready{descriptor, POLLIN, 0};
        if (poll(&ready, 1, kMs) <= 0) continue;
        const ssize_t n = read(descriptor, to, most);
        if (n >= 0 || (errno != EINTR && errno != EAGAIN)) return n;
    }
    return 0;
}

/// Whether the last that was written to standard output is a row without its newline.
bool is_inside_row = false;

bool ends_inside_row(std::string_view text) {
    if (text.ends_with(kPlain)) text.remove_suffix(kPlain.size());
    return !text.empty() && text.back() != '\n';
}

/// Whether what is written to one comes behind what was written to the other.
bool are_same(int a, int b) {
    struct stat of_a {
    }, of_b{};
    return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

}  // namespace

void Output::write(std::string_view text) {
    if (!text.empty()) is_inside_row = ends_inside_row(text);
    if (is_closed_ || write_all(STDOUT_FILENO, text)) return;
    is_closed_ = true;
    if (const int fault = errno; !means_gone(fault, STDOUT_FILENO))
        throw Error(fmt::format("standard output cannot be written: {}", std::strerror(fault)));
}

void write_error(std::string_view text) {
    const bool is_glued = is_inside_row && !text.starts_with('\r');
    if (is_glued && are_same(STDOUT_FILENO, STDERR_FILENO)) write_all(STDERR_FILENO, "\n");
    is_inside_row = is_inside_row && !is_glued;
    write_all(STDERR_FILENO, text);
}

std::string read_text(const std::string& path) {
    constexpr size_t kMostBytes = 256 << 20;
    const bool is_stdin = path == "-";
    const std::string label = is_stdin ? "standard input" : path;
    const int descriptor = is_stdin ? STDIN_FILENO : open_to_read(path);
    std::string text;
    ssize_t n = descriptor < 0 ? -1 : 1;
    while (n > 0 && text.size() <= kMostBytes) {
        char piece[1 << 16];
        n = read_or_stop(descriptor, piece, sizeof piece);
        if (n > 0) text.append(piece, size_t(n));
    }
    const int fault = errno;
    if (descriptor >= 0 && !is_stdin) close(descriptor);
    if (n < 0) throw Error(fmt::format("{}: cannot be read: {}", label, std::strerror(fault)));
    if (text.size() > kMostBytes)
        throw Error(
            fmt::format("{}: has more than {} bytes, too many for a prompt", label, kMostBytes));
    return text;
}

LineReader::LineReader(const std::string& path)
    : label_(path == "-" ? "standard input" : path),
      descriptor_(path == "-" ? STDIN_FILENO : open_to_read(path)) {
    if (descriptor_ < 0)
        throw Error(fmt::format("{}: cannot be read: {}", label_, std::strerror(errno)));
}

LineReader::~LineReader() {
    if (descriptor_ > STDERR_FILENO) close(descriptor_);
}

std::optional<std::string_view> LineReader::next() {
    constexpr size_t kMostBytes = 64 << 20;
    size_t searched = begin_;  // no newline before it
    while (true) {
        const size_t end = buffer_.find('\n', searched);
        if (end != buffer_.npos || is_read_) {
            if (begin_ == buffer_.size()) return std::nullopt;
            const size_t stop = std::min(end, buffer_.size());
            const std::string_view line(buffer_.data() + begin_, stop - begin_);
            begin_ = std::min(stop + 1, buffer_.size());
            ++number_;
            return line;
        }
        buffer_.erase(0, begin_);
        begin_ = 0;
        searched = buffer_.size();
        if (buffer_.size() > kMostBytes)
            throw Error(
                fmt::format("{}: line {} has more than {} bytes", label_, number_ + 1, kMostBytes));
        char piece[1 << 16];
        const ssize_t n = read_or_stop(descriptor_, piece, sizeof piece);
        if (n < 0) throw Error(fmt::format("{}: cannot be read: {}", label_, std::strerror(errno)));
        if (n > 0) buffer_.append(piece, size_t(n));
        is_read_ = n == 0;
    }
}

std::string LineReader::place() const {
    return fmt::format("{}: line {}", label_, number_);
}

bool is_terminal(int descriptor) {
    return isatty(descriptor) == 1;
}

std::string counted(size_t n, std::string_view thing) {
    return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

}  // namespace hf
