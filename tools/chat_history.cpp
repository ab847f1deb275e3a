#include "tools/chat_history.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "tools/terminal.h"
#include "tools/write_file.h"

namespace hf {
namespace {

namespace fs = std::filesystem;

std::string as_line(std::string_view message) {
    std::string line;
    for (const char c : message) {
        if (c == '\n' || c == '\\') line += '\\';
        line += c == '\n' ? 'n' : c;
    }
    return line + '\n';
}

std::string as_message(std::string_view line) {
    std::string message;
    for (size_t i = 0; i < line.size(); ++i) {
        const bool is_escape = line[i] == '\\' && i + 1 < line.size();
        if (is_escape) ++i;
        message += is_escape && line[i] == 'n' ? '\n' : line[i];
    }
    return terminal_text(message);
}

/// Holds the folder for one writer. Where that is not possible two chats may lose a line.
class FolderLock {
  public:
    explicit FolderLock(const fs::path& folder)
        : descriptor_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        if (descriptor_ >= 0) flock(descriptor_, LOCK_EX);
    }
    ~FolderLock() {
        if (descriptor_ >= 0) close(descriptor_);
    }
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;

  private:
    int descriptor_;
};

/// Makes a folder that is its owner's alone, and those above it.
void make_folder(const fs::path& folder) {
    std::error_code fault;
    if (fs::is_directory(folder, fault)) return;
    if (folder.has_parent_path() && folder.parent_path() != folder)
        make_folder(folder.parent_path());
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        throw Error(
            fmt::format("{}: cannot be created: {}", folder.string(), std::strerror(errno)));
}

}  // namespace

std::vector<std::string> ChatHistory::read() const {
    std::vector<std::string> messages;
    std::error_code fault;
    if (path_.empty() || !fs::exists(path_, fault)) return messages;
    const uintmax_t bytes = fs::file_size(path_, fault);
    if (fault || bytes > 4 * kMostBytes)
        throw Error(fmt::format("{}: is no history of chats ({}); move it away", path_,
                                fault ? fault.message() : fmt::format("{} bytes", bytes)));
    std::ifstream in(path_, std::ios::binary);  // to its end, whatever signals come
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in.is_open() || in.bad()) throw Error(fmt::format("{}: cannot be read", path_));
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        if (end > at) messages.push_back(as_message(std::string_view(text).substr(at, end - at)));
        at = end + 1;
    }
    return messages;
}

void ChatHistory::add(std::string_view message) {
    if (path_.empty() || message.size() > kLongest) return;
    const fs::path folder = fs::path(path_).parent_path();
    make_folder(folder);
    const FolderLock lock(folder);
    std::vector<std::string> messages = read();
    if (!messages.empty() && messages.back() == message) return;
    messages.emplace_back(message);
    size_t first = messages.size(), bytes = 0;
    while (first > 0 && messages.size() - first < kMostMessages) {
        bytes += as_line(messages[first - 1]).size();
        if (bytes > kMostBytes) break;
        --first;
    }
    std::string text;
    for (; first < messages.size(); ++first) text += as_line(messages[first]);
    write_file(path_, text, 0600);
}

std::string history_path(const Environment& environment) {
    fs::path folder = variable(environment, "XDG_STATE_HOME");
    const fs::path home = variable(environment, "HOME");
    if (!folder.is_absolute() && home.is_absolute()) folder = home / ".local" / "state";
    return folder.is_absolute() ? folder / "hipfire" / "history" : fs::path();
}

}  // namespace hf
