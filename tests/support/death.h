// Our own mistakes end the process.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hf::test {

/// Whether a process that does this is aborted.
template <class Mistake>
bool is_aborted(const Mistake& mistake) {
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);  // doctest's would report it
        mistake();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace hf::test
