// How much memory something may ask for.
#pragma once

#include <doctest/doctest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <new>
#include <string>

#include "libcore/base/error.h"

namespace hf::test {

inline size_t address_space_bytes() {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * size_t(sysconf(_SC_PAGESIZE));
}

/// Whether `holds` is true in a child process that may grow by so many bytes, mappings included.
template <class Condition>
bool holds_within(size_t bytes, Condition&& holds) {
    const pid_t child = fork();
    if (child == 0) {
        malloc_trim(0);
        const rlimit limit = {address_space_bytes() + bytes, RLIM_INFINITY};
        setrlimit(RLIMIT_AS, &limit);
        _exit(holds() ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status) == 0;
}

/// Whether `action` has enough with so many bytes more. hf::Error is a good end unless it is about
/// the mapping. (Sanitizers take their memory at the start, so with them it always is enough.)
template <class Action>
bool is_enough(size_t bytes, Action&& action) {
    return holds_within(bytes, [&] {
        try {
            action();
        } catch (const Error& error) {
            return std::string(error.what()).find("cannot be mapped") == std::string::npos;
        } catch (const std::bad_alloc&) {
            return false;
        }
        return true;
    });
}

}  // namespace hf::test
