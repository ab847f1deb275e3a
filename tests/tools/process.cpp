#include "tests/tools/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace hf::test {
namespace {

constexpr int kMostMs = 240'000;

struct Pipe {
    int end[2];  // read, write
    Pipe() {
        if (pipe2(end, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    }
    ~Pipe() { close_end(0), close_end(1); }
    void close_end(int i) {
        if (end[i] >= 0) close(end[i]);
        end[i] = -1;
    }
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
    list.push_back(nullptr);
    return list;
}

[[noreturn]] void become(const std::vector<std::string>& command, const RunOptions& options, int in,
                         int out, int err) {
    dup2(in, STDIN_FILENO);
    if (!options.stdout_path.empty())
        out = open(options.stdout_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(out, STDOUT_FILENO);
    if (options.close_stdout) close(STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    if (chdir(options.folder.c_str()) == 0)
        execve(command[0].c_str(), pointers(command).data(), pointers(options.environment).data());
    _exit(127);
}

/// Adds what can be read now; false at the end.
bool read_some(int descriptor, std::string& text) {
    char piece[4096];
    const ssize_t n = read(descriptor, piece, sizeof piece);
    if (n > 0) text.append(piece, size_t(n));
    return n > 0;
}

}  // namespace

Outcome run_process(const std::vector<std::string>& command, const RunOptions& options) {
    Pipe in, out, err;
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("fork");
    if (child == 0) become(command, options, in.end[0], out.end[1], err.end[1]);
    out.close_end(1), err.close_end(1);
    fcntl(in.end[1], F_SETFL, O_NONBLOCK);  // our end for reading is open still: no SIGPIPE
    if (write(in.end[1], options.input.data(), options.input.size()) !=
        ssize_t(options.input.size()))
        throw std::runtime_error("the input does not fit a pipe");
    in.close_end(0), in.close_end(1);

    Outcome outcome;
    while (out.end[0] >= 0 || err.end[0] >= 0) {
        pollfd ready[] = {{out.end[0], POLLIN, 0}, {err.end[0], POLLIN, 0}};
        if (poll(ready, 2, kMostMs) == 0) {
            kill(child, SIGKILL);
            break;
        }
        if (ready[0].revents && !read_some(out.end[0], outcome.out))
            out.close_end(0);
        else if (ready[0].revents && options.on_output && !options.on_output(child, outcome.out))
            out.close_end(0);
        if (ready[1].revents && !read_some(err.end[0], outcome.err)) err.close_end(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

}  // namespace hf::test
