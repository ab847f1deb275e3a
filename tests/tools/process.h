// Runs a program as a person or a script would, and keeps what it said.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace hf::test {

struct Outcome {
    int code = -1;  // exit code; 128 + signal when a signal ended it, as shells say
    std::string out, err;
};

struct RunOptions {
    std::string input = {};                     // what a pipe on standard input holds
    std::vector<std::string> environment = {};  // "NAME=value", added to an empty one
    std::string folder = "/";                   // where it runs
    std::string stdout_path = {};               // a file in place of the pipe
    bool close_stdout = false;                  // without a standard output at all
    /// Called after each piece of output, with all of it so far; false closes our end of the pipe.
    std::function<bool(pid_t, const std::string& out)> on_output = {};
};

/// Runs a program to its end, at most a minute. Output and errors are read as they come.
Outcome run_process(const std::vector<std::string>& command, const RunOptions& options = {});

}  // namespace hf::test
