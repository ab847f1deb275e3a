#include "tests/tools/terminal_process.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <chrono>
#include <cstring>
#include <stdexcept>

namespace hf::test {
namespace {

constexpr std::chrono::seconds kMost(240);

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
    list.push_back(nullptr);
    return list;
}

}  // namespace

TerminalProcess::TerminalProcess(const std::vector<std::string>& command,
                                 const std::vector<std::string>& environment,
                                 const std::function<void()>& prepare) {
    const winsize size = {24, 80, 0, 0};
    int child_end = -1;
    if (openpty(&terminal_, &child_end, nullptr, nullptr, &size) != 0)
        throw std::runtime_error("openpty");
    tcgetattr(child_end, &modes_before_);
    modes_before_.c_cc[VERASE] = '\b';  // modes that nobody has by chance
    modes_before_.c_cc[VKILL] = 'K';
    tcsetattr(child_end, TCSANOW, &modes_before_);
    tcgetattr(child_end, &modes_before_);
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);  // no handler of ours runs in the child
    pid_ = fork();
    if (pid_ == 0) {
        for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
        sigprocmask(SIG_SETMASK, &before, nullptr);
        close(terminal_);
        if (login_tty(child_end) != 0) _exit(127);
        if (prepare) prepare();
        execve(command[0].c_str(), pointers(command).data(), pointers(environment).data());
        _exit(127);
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
    close(child_end);
    if (pid_ < 0) throw std::runtime_error("fork");
}

TerminalProcess::~TerminalProcess() {
    if (terminal_ >= 0) close(terminal_);
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
}

/// False: nothing will come any more.
bool TerminalProcess::read_some(int timeout_ms) {
    pollfd ready{terminal_, POLLIN, 0};
    if (poll(&ready, 1, timeout_ms) == 0) return true;
    char piece[4096];
    const ssize_t n = read(terminal_, piece, sizeof piece);
    if (n > 0) output_.append(piece, size_t(n));
    return n > 0;
}

void TerminalProcess::type(std::string_view keys) {
    if (write(terminal_, keys.data(), keys.size()) != ssize_t(keys.size()))
        throw std::runtime_error("the terminal takes no keys");
}

bool TerminalProcess::wait_for(std::string_view text) {
    const auto end = Clock::now() + kMost;
    while (Clock::now() < end) {
        const size_t at = output_.find(text, seen_);
        if (at != output_.npos) {
            seen_ = at + text.size();
            return true;
        }
        if (!read_some(100)) return false;
    }
    return false;
}

void TerminalProcess::signal(int number) const {
    kill(pid_, number);
}

bool TerminalProcess::wait_until_stopped() {
    int status = 0;
    return waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
}

int TerminalProcess::wait_for_exit() {
    const auto end = Clock::now() + kMost;
    bool is_open = terminal_ >= 0;
    while (waitpid(pid_, &status_, WNOHANG) == 0) {
        if (Clock::now() > end) return -1;
        if (is_open)
            is_open = read_some(20);
        else
            usleep(10'000);
    }
    while (is_open) {
        pollfd ready{terminal_, POLLIN, 0};
        is_open = poll(&ready, 1, 0) == 1 && read_some(0);
    }
    pid_ = -1;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

void TerminalProcess::hang_up() {
    close(terminal_);
    terminal_ = -1;
}

bool TerminalProcess::is_restored() const {
    termios now = {};
    tcgetattr(terminal_, &now);
    return now.c_iflag == modes_before_.c_iflag && now.c_oflag == modes_before_.c_oflag &&
           now.c_cflag == modes_before_.c_cflag && now.c_lflag == modes_before_.c_lflag &&
           std::memcmp(now.c_cc, modes_before_.c_cc, sizeof now.c_cc) == 0;
}

void TerminalProcess::resize(unsigned short columns, unsigned short rows) const {
    const winsize size = {rows, columns, 0, 0};
    ioctl(terminal_, TIOCSWINSZ, &size);
}

}  // namespace hf::test
