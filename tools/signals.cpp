#include "tools/signals.h"

#include <signal.h>
#include <unistd.h>

namespace hf {
namespace {

std::atomic<bool> flag{false};  // signal handlers reach nothing but globals
std::atomic<bool> was_signalled{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void handle(int) {
    if (was_signalled.exchange(true)) _exit(kInterruptedExit);
    flag = true;
}

}  // namespace

void catch_interrupts() {
    struct sigaction action {};
    action.sa_handler = handle;  // no SA_RESTART: a read of standard input returns
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

std::atomic<bool>& interrupted() {
    return flag;
}

}  // namespace hf
