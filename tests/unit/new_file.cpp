// Files that are there as a whole or not at all.
#include "libcore/file/new_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/data.h"
#include "tests/unit/temp_folder.h"

using namespace hf;
using namespace hf::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_in(const TempFolder& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.path()))
        names.push_back(entry.path().filename());
    return names;
}

/// Whether files here can be without a name.
bool has_nameless_files(const TempFolder& folder) {
    const int descriptor = open(folder.path().c_str(), O_WRONLY | O_TMPFILE, 0666);
    if (descriptor >= 0) close(descriptor);
    return descriptor >= 0;
}

void put(NewFile& file, const std::string& text) {
    file.write_at(0, text.data(), text.size());
}

}  // namespace

TEST_CASE("new file: it is there when it is finished, and what it replaces stays until then") {
    for (const bool replaces : {false, true}) {
        const TempFolder folder;
        if (replaces) folder.write("f", "old");
        {
            NewFile given_up(folder / "f", replaces);
            put(given_up, "half");
            CHECK(fs::exists(folder / "f") == replaces);
        }
        CHECK(names_in(folder).size() == (replaces ? 1 : 0));
        NewFile file(folder / "f", replaces);
        put(file, "whole");
        file.write_at(6, "x", 1);
        file.finish();
        CHECK(read_file(folder / "f") == std::string("whole\0x", 7));
        CHECK(names_in(folder) == std::vector<std::string>{"f"});
        struct stat status;
        REQUIRE(stat((folder / "f").c_str(), &status) == 0);
        const mode_t mask = umask(0);
        umask(mask);
        CHECK((status.st_mode & 0777) == (0666 & ~mask));
        CHECK(status.st_nlink == 1);
    }
}

TEST_CASE("new file: one that replaces a file has its permissions, as far as it may") {
    const TempFolder folder;
    const auto mode_of = [&] { return unsigned(fs::status(folder / "f").permissions()); };
    const std::pair<unsigned, unsigned> cases[] = {{0600, 0600}, {0664, 0664}, {0755, 0644}};
    for (const auto& [old_mode, want] : cases) {
        folder.write("f", "old");
        fs::permissions(folder / "f", fs::perms(old_mode));
        NewFile file(folder / "f", true);
        put(file, "new");
        file.finish();
        CHECK(mode_of() == want);
        fs::permissions(folder / "f", fs::perms(0644));
    }
    NewFile(folder / "f", true, 0600).finish();
    CHECK(mode_of() == 0600);
}

TEST_CASE("new file: a process that is killed leaves nothing, where files need no name") {
    const TempFolder folder;
    const pid_t child = fork();
    if (child == 0) {
        NewFile file(folder / "f", false);
        put(file, "half");
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    if (has_nameless_files(folder))
        CHECK(names_in(folder).empty());
    else
        MESSAGE("skipped: no nameless files in " << folder.path());
}

TEST_CASE("new file: leftovers of a process with the same number are not in the way") {
    const TempFolder folder;
    folder.write("f", "old");
    const std::string stale = "f." + std::to_string(getpid()) + ".part";
    folder.write(stale, "stale");
    NewFile file(folder / "f", true);
    put(file, "new");
    file.finish();
    CHECK(read_file(folder / "f") == "new");
    CHECK(read_file(folder / stale) == "stale");
    CHECK(names_in(folder).size() == 2);
}

TEST_CASE("new file: what is there and may not be replaced stays, also when it came meanwhile") {
    const TempFolder folder;
    folder.write("f", "old");
    CHECK_THROWS_WITH_AS(NewFile(folder / "f", false), doctest::Contains("--force"), Error);
    NewFile file(folder / "g", false);
    put(file, "new");
    folder.write("g", "another's");
    CHECK_THROWS_WITH_AS(file.finish(), doctest::Contains("exists"), Error);
    CHECK(read_file(folder / "g") == "another's");
    for (const std::string& path : {folder.path(), std::string("/dev/null")})
        CHECK_THROWS_WITH_AS(NewFile(path, true), doctest::Contains("not a regular file"), Error);
    CHECK_THROWS_WITH_AS(NewFile(folder / "no/f", true), doctest::Contains("No such file"), Error);
}
