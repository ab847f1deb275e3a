// Files that a run looks for and writes: the bundled model, .npy.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "libcore/base/error.h"
#include "libcore/run/find_model.h"
#include "libcore/run/npy.h"
#include "tests/support/data.h"

using namespace hf;
using namespace hf::test;
namespace fs = std::filesystem;

namespace {

/// A folder that is gone afterwards.
struct TempFolder {
    TempFolder() {
        std::string name = fs::temp_directory_path() / "hf_run_XXXXXX";
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~TempFolder() { fs::remove_all(path); }
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(path))
            names.push_back(entry.path().filename());
        return names;
    }
    fs::path path;
};

void write_file(const fs::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("npy: rows are written as numpy describes them") {
    const TempFolder folder;
    const std::string path = folder.path / "rows.npy";
    const float rows[2][3] = {{1, -2, 0.5f}, {3e38f, 0, -0.0f}};
    NpyRows npy(path, 3);
    for (const auto& row : rows) npy.add(row);
    CHECK(!fs::exists(path));
    npy.finish();

    const std::string bytes = read_file(path);
    REQUIRE(bytes.size() == 128 + sizeof rows);
    CHECK(bytes.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
    CHECK(uint8_t(bytes[8]) + 256 * uint8_t(bytes[9]) == 118);  // so that the data starts at 128
    CHECK(bytes.find("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }") == 10);
    CHECK(bytes[127] == '\n');
    CHECK(std::memcmp(bytes.data() + 128, rows, sizeof rows) == 0);
    CHECK(folder.files() == std::vector<std::string>{"rows.npy"});
}

TEST_CASE("npy: an old file stays until the new one is finished") {
    const TempFolder folder;
    const std::string path = folder.path / "rows.npy";
    write_file(path, "old");
    {
        NpyRows given_up(path, 1);
        given_up.add(std::vector{1.0f});
        CHECK(read_file(path) == "old");
    }
    CHECK(read_file(path) == "old");
    CHECK(folder.files() == std::vector<std::string>{"rows.npy"});
    NpyRows(path, 1).finish();
    CHECK(read_file(path).size() == 128);
}

TEST_CASE("npy: a place that cannot be written is named, and special files are left alone") {
    const TempFolder folder;
    CHECK_THROWS_WITH_AS(NpyRows(folder.path / "no/rows.npy", 1), doctest::Contains("no/rows.npy"),
                         Error);
    CHECK_THROWS_WITH_AS(NpyRows(folder.path, 1), doctest::Contains("not a regular file"), Error);
    CHECK_THROWS_WITH_AS(NpyRows("/dev/null", 1), doctest::Contains("not a regular file"), Error);
    CHECK(folder.files().empty());
}

TEST_CASE("find model: a known name or an existing path is a model, anything else a prompt") {
    const TempFolder folder;
    const KnownModel known{"small", "/nowhere", "test", {}};
    CHECK(is_model("small", {&known, 1}));
    CHECK(is_model(folder.path, {}));
    CHECK(is_model("bundled", {}));
    CHECK_FALSE(is_model("small", {}));
    CHECK_FALSE(is_model("Tell me a story.", {&known, 1}));
    CHECK_FALSE(is_model("", {}));
    CHECK_FALSE(is_model(std::string(100000, 'x'), {}));  // longer than any path
}

TEST_CASE("find model: the bundled one is found where it is installed and where it is built") {
    const TempFolder folder;
    const fs::path root = folder.path;
    fs::create_directories(root / "a/b/c/d/e");
    CHECK_THROWS_WITH_AS(bundled_model(root / "a/b/c/d"),
                         doctest::Contains("share/hipfire/models/demo"), Error);

    fs::create_directories(root / "models/demo");
    for (const char* at : {".", "a", "a/b/c/d"})
        CHECK(fs::equivalent(bundled_model(root / at), root / "models/demo"));
    CHECK_THROWS_AS(bundled_model(root / "a/b/c/d/e"), Error);  // five above

    fs::create_directories(root / "a/share/hipfire/models/demo");
    CHECK(fs::equivalent(bundled_model(root / "a/bin"), root / "a/share/hipfire/models/demo"));
}
