// The tokenizers that tests know: folders with tokenizer.json and cases.json.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "libcore/text/tokenizer.h"
#include "tests/support/data.h"

namespace hf::test {

using Json = nlohmann::json;

/// Qwen3.5's own tokenizer (10 MB) is not in the repository: HIPFIRE_TEST_DATA_DIR names a folder
/// that has it as tokenizers/qwen35. Empty when it is not there; the test's log then says so.
inline std::string big_tokenizer_folder() {
    const char* data = std::getenv("HIPFIRE_TEST_DATA_DIR");
    const std::string folder = std::string(data ? data : "") + "/tokenizers/qwen35";
    if (std::ifstream(folder + "/tokenizer.json")) return folder;
    static bool said = false;
    if (!std::exchange(said, true))
        MESSAGE("skipped: no tokenizers/qwen35/tokenizer.json in HIPFIRE_TEST_DATA_DIR");
    return {};
}

inline std::vector<std::string> tokenizer_folders() {
    std::vector<std::string> folders = {data_path("tokenizers/small_qwen35")};
    if (const std::string big = big_tokenizer_folder(); !big.empty()) folders.push_back(big);
    return folders;
}

inline Tokenizer load_tokenizer(const std::string& folder) {
    const std::string path = folder + "/tokenizer.json";
    return Tokenizer::from_json(path, read_file(path));
}

inline Json read_json(const std::string& path) {
    return Json::parse(read_file(path));
}

using Ids = std::vector<int32_t>;

}  // namespace hf::test
