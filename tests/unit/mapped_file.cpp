// What can be mapped and what cannot, and what happens when a mapped file is cut short.
#include "libcore/file/mapped_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "tests/unit/temp_folder.h"

namespace {

using namespace hf;
using namespace hf::test;

std::string_view text_of(const MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

void make_socket(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    close(descriptor);
}

TEST_CASE("mapped file: bytes and path stay in place when it moves") {
    const TempFolder folder;
    folder.write("a", "some bytes");
    folder.write("b", "others");
    MappedFile first(folder / "a");
    const std::byte* where = first.bytes().data();
    MappedFile second(std::move(first));
    CHECK(text_of(second) == "some bytes");
    CHECK(second.bytes().data() == where);
    CHECK(second.path() == folder / "a");
    second = MappedFile(folder / "b");
    CHECK(text_of(second) == "others");
}

TEST_CASE("mapped file: what is no file with bytes in it is refused with its path and its kind") {
    const TempFolder folder;
    folder.write("empty", "");
    REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
    make_socket(folder / "socket");
    std::filesystem::create_symlink("loop", folder / "loop");
    std::filesystem::create_symlink("gone", folder / "dangling");
    const std::pair<std::string, std::string> kCases[] = {
        {folder / "missing", "cannot be found: No such file"},
        {folder / "dangling", "cannot be found: No such file"},
        {folder / "loop", "cannot be found: Too many levels"},
        {folder / "empty", "the file is empty"},
        {folder / "pipe", "is a pipe"},
        {folder / "socket", "is a socket"},
        {folder.path(), "is a folder"},
        {"/dev/null", "is a device"},
        {"", "cannot be found"},
    };
    for (const auto& [path, words] : kCases) {
        CAPTURE(path);
        const std::string sentence = error_of([&] { MappedFile file(path); });
        CAPTURE(sentence);
        CHECK(sentence.starts_with(path + ": "));
        CHECK(has_words(sentence, words));
    }
}

TEST_CASE("mapped file: a file that nobody may read is refused" *
          doctest::skip(geteuid() == 0)) {  // root reads everything
    const TempFolder folder;
    folder.write("secret", "x");
    REQUIRE(chmod((folder / "secret").c_str(), 0) == 0);
    CHECK(has_words(error_of([&] { MappedFile file(folder / "secret"); }), "Permission denied"));
}

TEST_CASE("mapped file: threads may map files at the same time") {
    const TempFolder folder;
    for (char name = 'a'; name < 'e'; ++name) folder.write({name}, {name});
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (char name = 'a'; name < 'e'; ++name)
        threads.emplace_back([&, name] {
            for (int i = 0; i < 200; ++i) {
                const MappedFile file(folder / std::string{name});
                wrong += text_of(file) != std::string{name};
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
}

/// How a child process ended that ran `action`, and what it wrote to standard error.
struct Ended {
    int status;
    std::string said;
};

template <class Action>
Ended run_child(Action&& action) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGBUS, SIG_DFL);  // doctest and sanitizers have handlers of their own
        action();
        _exit(77);
    }
    close(ends[1]);
    Ended ended{0, ""};
    char buffer[256];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) ended.said.append(buffer, n);
    close(ends[0]);
    REQUIRE(waitpid(child, &ended.status, 0) == child);
    return ended;
}

void touch(const std::byte* at) {
    [[maybe_unused]] volatile std::byte byte = *at;
}

const size_t kPage = size_t(sysconf(_SC_PAGESIZE));

TEST_CASE("mapped file: touching what was cut off says so and ends with 1") {
    const TempFolder folder;
    for (const char* name : {"a", "b", "c"}) folder.write(name, std::string(3 * kPage, 'x'));
    const Ended ended = run_child([&] {
        report_shrunk_files();
        report_shrunk_files();
        { const MappedFile gone(folder / "a"); }  // its slot is used again
        std::vector<MappedFile> files;
        for (const char* name : {"a", "b", "c"}) files.emplace_back(folder / name);
        if (truncate((folder / "b").c_str(), off_t(kPage)) != 0) _exit(78);
        touch(files[1].bytes().data());  // still there
        touch(files[1].bytes().data() + 3 * kPage - 1);
    });
    CHECK(ended.said == (folder / "b") + ": the file became shorter while it was in use\n");
    CHECK(WIFEXITED(ended.status));
    CHECK(WEXITSTATUS(ended.status) == 1);
}

TEST_CASE("mapped file: other bus errors keep their usual end") {
    const TempFolder folder;
    folder.write("a", std::string(3 * kPage, 'x'));
    const Ended by_access = run_child([&] {
        report_shrunk_files();
        const int file = open((folder / "a").c_str(), O_RDONLY);
        const void* foreign = mmap(nullptr, 3 * kPage, PROT_READ, MAP_PRIVATE, file, 0);
        if (truncate((folder / "a").c_str(), 1) != 0) _exit(78);
        touch(static_cast<const std::byte*>(foreign) + kPage);
    });
    const Ended by_signal = run_child([&] {
        report_shrunk_files();
        raise(SIGBUS);
    });
    for (const Ended& ended : {by_access, by_signal}) {
        CHECK(ended.said == "");
        CHECK(WIFSIGNALED(ended.status));
        CHECK(WTERMSIG(ended.status) == SIGBUS);
    }
}

}  // namespace
