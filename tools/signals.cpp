#include "tools/signals.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include <fmt/format.h>

#include "libcore/base/error.h"

namespace hf {
namespace {

std::atomic<bool> flag{false};  // signal handlers reach nothing but globals
std::atomic<bool> was_signalled{false};
std::atomic<bool> is_ending{false};
std::atomic<int> wake_descriptor{-1}, exit_code{0};
std::atomic<void (*)()> restore_before_end{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void note(int signal) {
    int none = 0;
    if (signal == SIGHUP)
        exit_code = 128 + SIGHUP;
    else
        exit_code.compare_exchange_strong(none, kInterruptedExit);
}

void handle(int signal) {
    note(signal);
    if (was_signalled.exchange(true)) _exit(exit_code);
    flag = true;
}

void handle_in_chat(int signal) {
    note(signal);
    if (signal != SIGINT && is_ending.exchange(true)) {
        restore_before_end.load()();
        _exit(exit_code);
    }
    flag = true;
    wake_up();
}

bool is_ignored(int signal) {
    struct sigaction action {};
    return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void catch_signals(std::initializer_list<int> signals, void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;  // no SA_RESTART: a read of standard input returns
    sigemptyset(&action.sa_mask);
    for (const int signal : signals)
        if (signal != SIGHUP || !is_ignored(SIGHUP)) sigaction(signal, &action, nullptr);
}

}  // namespace

void catch_interrupts() {
    catch_signals({SIGINT, SIGTERM, SIGHUP}, handle);
}

void catch_chat_signals(void (*restore)()) {
    restore_before_end = restore;
    wake_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_descriptor < 0)
        throw Error(fmt::format("no descriptor is left for signals: {}", std::strerror(errno)));
    catch_signals({SIGINT, SIGTERM, SIGHUP}, handle_in_chat);
}

int interrupted_exit() {
    return exit_code;
}

std::atomic<bool>& interrupted() {
    return flag;
}

bool end_wanted() {
    return is_ending;
}

int signal_descriptor() {
    return wake_descriptor;
}

void wake_up() {
    const int fault = errno;
    const uint64_t one = 1;
    // one that cannot be written is readable already
    [[maybe_unused]] const ssize_t n = write(wake_descriptor, &one, sizeof one);
    errno = fault;
}

}  // namespace hf
