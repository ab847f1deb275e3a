// docs/cpu-coverage.md against the program, and the page against the table of formats.
#include <doctest/doctest.h>

#include <sstream>

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

TEST_CASE("docs/cpu-coverage.md is what hf-inspect --coverage prints") {
    const std::vector<std::string> page = lines(coverage_page());
    const std::vector<std::string> file =
        lines(test::read_file(test::data_path("../../docs/cpu-coverage.md")));
    MESSAGE("to renew it: hf-inspect --coverage > docs/cpu-coverage.md");
    CHECK(page.size() == file.size());
    for (size_t i = 0; i < std::min(page.size(), file.size()); ++i) CHECK(file[i] == page[i]);
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
