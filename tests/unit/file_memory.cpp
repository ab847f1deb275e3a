// How much memory hostile headers make the reader ask for.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <new>

#include "libcore/file/mapped_file.h"
#include "libcore/file/safetensors.h"
#include "tests/unit/temp_folder.h"

namespace {

using namespace hf;
using namespace hf::test;

constexpr size_t kMB = 1'000'000;

/// `start`, and `text` again and again until there are so many bytes.
std::string repeated(std::string start, const std::string& text, size_t bytes) {
    std::string out = std::move(start);
    out.reserve(bytes + text.size());
    while (out.size() < bytes) out += text;
    return out;
}

std::string many_entries(size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i)
        out += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                           i ? "," : "", i);
    return out;
}

size_t address_space_bytes() {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * size_t(sysconf(_SC_PAGESIZE));
}

/// Reads a file in a child process that may grow by so many bytes, mapping included; true when
/// that was enough. (Sanitizers take their memory at the start, so with them it always is.)
bool is_enough(const std::string& path, size_t bytes) {
    const pid_t child = fork();
    if (child == 0) {
        malloc_trim(0);
        const rlimit limit = {address_space_bytes() + bytes, RLIM_INFINITY};
        setrlimit(RLIMIT_AS, &limit);
        try {
            const MappedFile file(path);
            read_safetensors(file.bytes(), path, 0);
        } catch (const Error& error) {
            _exit(std::string(error.what()).find("cannot be mapped") == std::string::npos ? 0 : 1);
        } catch (const std::bad_alloc&) {
            _exit(1);
        }
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status) == 0;
}

TEST_CASE("safetensors: a hostile header costs at most 64 MB and twice its own size") {
    const std::pair<std::string, std::string> kInside[] = {
        {"brackets", repeated("", "[", 40 * kMB)},
        {"spaces", repeated("", " ", 40 * kMB)},
        {"one long name", repeated("\"", "x", 40 * kMB)},
        {"one long name of escapes", repeated("\"", "\\n", 40 * kMB)},
        {"a list of numbers", repeated(R"("a":{"x":[)", "1,", 40 * kMB)},
        {"metadata", repeated(R"("__metadata__":{)", R"("a":"b",)", 40 * kMB)},
        {"too many dimensions", repeated(R"("a":{"shape":[)", "1,", 40 * kMB)},
        {"as many tensors as allowed", many_entries(kMostTensors)},
        {"one tensor more than allowed", many_entries(kMostTensors + 1)},
    };
    const TempFolder folder;
    for (const auto& [what, inside] : kInside) {
        CAPTURE(what);
        folder.write("x", safetensors("{" + inside + "}", 0));
        CHECK(is_enough(folder / "x", 64 * kMB + 2 * inside.size()));
    }
}

}  // namespace
