// ChatHistory: the lines that the up arrow brings back, from one chat to the next.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libcore/config/resolve.h"

namespace hf {

/// One message per line, the oldest first; a newline in it is "\n", a backslash "\\". Written as a
/// whole, readable by its owner alone. Chats that run at the same time share it.
class ChatHistory {
  public:
    static constexpr size_t kMostMessages = 1000;
    static constexpr size_t kMostBytes = 1 << 20;
    static constexpr size_t kLongest = 16 << 10;  // bytes; a longer message is not kept

    /// path  empty: nothing is read or kept
    explicit ChatHistory(std::string path) : path_(std::move(path)) {}

    /// A file that is not there is an empty history. Whatever it holds is taken as text.
    /// Errors  hf::Error for one that cannot be read, or holds more than four times kMostBytes
    std::vector<std::string> read() const;

    /// Adds a message to what the file holds now; the oldest go when there are too many.
    /// Errors  hf::Error; the file is as before
    void add(std::string_view message);

  private:
    std::string path_;
};

/// $XDG_STATE_HOME/hipfire/history, else ~/.local/state/hipfire/history; empty without a home.
std::string history_path(const Environment& environment);

}  // namespace hf
