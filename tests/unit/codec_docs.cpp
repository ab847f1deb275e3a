// The table of docs/formats.md against the table of the program.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>

#include "libcore/codec/codec.h"
#include "tests/support/data.h"

namespace hf {
namespace {

std::string id(int number) {
    return number < 0 ? "" : std::to_string(number);
}

/// A row of the table up to the notes. Bytes are those that a group more costs.
std::string documented(const Codec& codec) {
    constexpr uint64_t kCols = 4096;
    const auto bytes = [&codec](uint64_t cols) { return tensor_bytes(codec, {1, cols}); };
    const uint64_t group = (bytes(2 * kCols) - bytes(kCols)) / (kCols / codec.group);
    const uint64_t block = rotation_block(codec.rotation);
    return fmt::format("| `{}` | {} | {} | {} | {} | {} | {:g} | {} | {} |", codec.name,
                       id(codec.ids.hfq), id(codec.ids.gguf), codec.ids.safetensors, codec.group,
                       group, 8 * double(bytes(kCols)) / double(kCols),
                       block == 1 ? "" : std::to_string(block), codec.takes_awq ? "yes" : "");
}

TEST_CASE("docs/formats.md lists every format, in order, with its facts") {
    std::istringstream text(test::read_file(test::data_path("../../docs/formats.md")));
    std::vector<std::string> rows;
    for (std::string line; std::getline(text, line);)
        if (line.starts_with("| `")) rows.push_back(line);
    REQUIRE(rows.size() == codecs().size());
    for (size_t i = 0; i < rows.size(); ++i) {
        const std::string expected = documented(codecs()[i]);
        CHECK(rows[i].substr(0, expected.size()) == expected);
    }
}

}  // namespace
}  // namespace hf
