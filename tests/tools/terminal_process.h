// A program on a terminal of its own, driven as a person would.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>
#include <termios.h>

namespace hf::test {

class TerminalProcess {
  public:
    /// environment  "NAME=value", all of it
    /// prepare      called in the child before the program starts
    TerminalProcess(const std::vector<std::string>& command,
                    const std::vector<std::string>& environment,
                    const std::function<void()>& prepare = {});
    ~TerminalProcess();  // kills what still runs
    TerminalProcess(const TerminalProcess&) = delete;
    TerminalProcess& operator=(const TerminalProcess&) = delete;

    void type(std::string_view keys);
    /// Reads until `text` has come behind what was waited for before; false when it does not come
    /// or the process has gone.
    bool wait_for(std::string_view text);
    /// What came since the start.
    const std::string& output() const { return output_; }

    void signal(int number) const;
    /// Waits until it is stopped (true) or gone.
    bool wait_until_stopped();
    /// Reads until it has gone. The exit code; 128 + signal when one ended it.
    int wait_for_exit();
    void hang_up();  // the terminal goes away

    /// Whether the terminal's modes are those from before the program started.
    bool is_restored() const;
    void resize(unsigned short columns, unsigned short rows) const;
    pid_t pid() const { return pid_; }

  private:
    int terminal_ = -1;
    pid_t pid_ = -1;
    int status_ = 0;
    termios modes_before_ = {};
    std::string output_;
    size_t seen_ = 0;

    bool read_some(int timeout_ms);
};

}  // namespace hf::test
