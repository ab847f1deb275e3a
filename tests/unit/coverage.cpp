// docs/cpu-coverage.md against the program, and the page against the table of formats.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "libcore/base/error.h"
#include "libcore/codec/codec.h"
#include "libcore/run/coverage.h"
#include "tests/support/data.h"

namespace hf {
namespace {

std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) all.push_back(line);
    return all;
}

/// As they are kept for the page; none when nobody has measured.
Speeds kept_speeds() {
    const std::string path = test::data_path("../../docs/perf/cpu-speeds.txt");
    return std::filesystem::exists(path) ? parse_speeds(test::read_file(path), path) : Speeds();
}

TEST_CASE("docs/cpu-coverage.md is what hf-inspect --coverage prints") {
    const std::vector<std::string> page = lines(coverage_page(kept_speeds()));
    const std::vector<std::string> file =
        lines(test::read_file(test::data_path("../../docs/cpu-coverage.md")));
    MESSAGE(
        "to renew it: hf-inspect --coverage > docs/cpu-coverage.md, "
        "with --speeds docs/perf/cpu-speeds.txt if that is there");
    CHECK(page.size() == file.size());
    for (size_t i = 0; i < std::min(page.size(), file.size()); ++i) CHECK(file[i] == page[i]);
}

TEST_CASE("coverage: what says where speeds come from is printed without control characters") {
    const Speeds speeds = parse_speeds("# a\033[2J\007b\nq4_0 i16/avx2 2\n", "t");
    CHECK(speeds.origin.find_first_of("\033\007") == std::string::npos);
    CHECK(speeds.origin.starts_with("a"));
    CHECK(speeds.origin.ends_with("b"));
}

TEST_CASE("coverage: speeds stand behind the functions that were measured, with the machine") {
    const Speeds speeds = parse_speeds(
        "# hf-bandwidth, CPU NAME,\n# 2 threads\nq4_0 i16/avx2 24.1\nq8_0 f32/scalar 0.5\n", "t");
    const std::string page = coverage_page(speeds), plain = coverage_page();
    CHECK(page.find("the median: hf-bandwidth, CPU NAME, 2 threads. ") != std::string::npos);
    CHECK(page.find("| `q4_0` | own | own 24.1 | own |") != std::string::npos);
    CHECK(page.find("| `q8_0` | own 0.5 | own |") != std::string::npos);
    CHECK(lines(page).size() == lines(plain).size() + 2);
    CHECK(plain.find("GB/s") == std::string::npos);
    CHECK(coverage_page(parse_speeds("", "t")) == plain);
}

TEST_CASE("coverage: a line of speeds that says nothing of a function is refused by its number") {
    for (const char* line :
         {"q4_0 i16/avx2", "q4_0 i16/avx2 1 2", "q4_0 i16/avx2 x", "q4_0 i16/avx2 0",
          "q4_0 i16/avx2 -1", "q4_0 i16/avx2 nan", "q4_0 i16/avx2 inf", "q4_0 i16/avx2 1e9",
          "q4_0 i16/avx 1", "nothing i16/avx2 1", "bf16 i16/avx2 1", "", "q8_0 i16/avx2 1"}) {
        CAPTURE(std::string(line));
        const std::string text = "q8_0 i16/avx2 3\n" + std::string(line) + "\n";
        CHECK_THROWS_WITH_AS(parse_speeds(text, "dir/x"), doctest::Contains("dir/x:2: "), Error);
    }
}

TEST_CASE("the coverage page has a row for each format and way, and owns what the table has") {
    const std::string page = coverage_page();
    size_t rows = 0, own = 0, wanted_rows = 0, wanted_own = 0;
    for (const std::string& line : lines(page)) {
        if (!line.starts_with("| `")) continue;
        ++rows;
        for (size_t at = 0; (at = line.find(" own ", at)) != std::string::npos; ++at) ++own;
    }
    for (const Codec& codec : codecs()) {
        wanted_rows += codec.cpu.prepare.has_integers() ? cpu::kActivations : 1;
        for (const auto& level : codec.cpu.dot)
            for (cpu::Dot dot : level) wanted_own += dot != nullptr;
    }
    CHECK(rows == wanted_rows);
    CHECK(own == wanted_own);
    CHECK(page.find("| `q4_0` | own | own |") != std::string::npos);
    CHECK(page.find("| `mq4g256` | own | own |") != std::string::npos);
    CHECK(page.find("as `hfq4g256`") != std::string::npos);
}

}  // namespace
}  // namespace hf
