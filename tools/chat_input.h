// What a person types in a chat: lines that become a message, and commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hf {

/// Puts lines together. A line that ends in a backslash goes on in the next one; a message that
/// begins with """ ends with the line that ends with """.
class MessageLines {
  public:
    /// True: the message is complete.
    bool add(std::string_view line);
    bool is_empty() const { return lines_.empty() && !is_block_; }

    /// The message; the next line begins another one.
    std::string take();

  private:
    std::vector<std::string> lines_;
    bool is_block_ = false;
};

/// A message of one line that begins with '/': its first word and the rest. Text that begins with a
/// space, or has several lines, is a message whatever comes first.
struct CommandLine {
    std::string_view name, argument;  // views into the line; name empty: no command
};
CommandLine parse_command(std::string_view message);

}  // namespace hf
