// The tokenizers that tests know: folders with tokenizer.json and cases.json.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/text/tokenizer.h"
#include "tests/support/data.h"

namespace hf::test {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

/// Small vocabularies, in the repository; each is there as vocab.gguf too.
inline const std::vector<std::string> kSmallTokenizers = {"small_qwen35", "small_qwen2",
                                                          "small_llama3", "small_llama2"};

/// A tokenizer of a real model, qwen35 (10 MB) or smollm2, which are not in the repository:
/// HIPFIRE_TEST_DATA_DIR names a folder that has them in tokenizers/. Empty when it is not there;
/// the test's log then says so.
inline std::string real_tokenizer(const std::string& name) {
    const char* data = std::getenv("HIPFIRE_TEST_DATA_DIR");
    const std::string folder = std::string(data ? data : "") + "/tokenizers/" + name;
    if (std::ifstream(folder + "/tokenizer.json")) return folder;
    static std::vector<std::string> said;
    if (std::find(said.begin(), said.end(), name) == said.end()) {
        MESSAGE("skipped: no tokenizers/" << name << "/tokenizer.json in HIPFIRE_TEST_DATA_DIR");
        said.push_back(name);
    }
    return {};
}

inline std::vector<std::string> tokenizer_folders() {
    std::vector<std::string> folders;
    for (const std::string& name : kSmallTokenizers)
        folders.push_back(data_path("tokenizers/" + name));
    for (const char* name : {"qwen35", "smollm2"})
        if (const std::string real = real_tokenizer(name); !real.empty()) folders.push_back(real);
    return folders;
}

inline Tokenizer load_tokenizer(const std::string& folder) {
    const std::string path = folder + "/tokenizer.json";
    return Tokenizer::from_json(path, read_file(path));
}

inline Json read_json(const std::string& path) {
    return Json::parse(read_file(path));
}

/// A text in memory that ends where it ends.
class ExactText {
  public:
    explicit ExactText(const std::string& text) : text_(text.begin(), text.end()) {}
    std::string_view view() const { return {text_.data(), text_.size()}; }

  private:
    std::vector<char> text_;
};

/// The text of a case of cases.json, which may be invalid UTF-8.
inline ExactText text_of_case(const Json& c) {
    if (!c.contains("bytes_hex")) return ExactText(c.at("text").get<std::string>());
    const std::string hex = c.at("bytes_hex");
    std::string bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes += char(std::stoi(hex.substr(i, 2), nullptr, 16));
    return ExactText(bytes);
}

/// All that a case says: ids with and without special tokens, and back.
inline void check_case(const Tokenizer& t, const Json& c) {
    const ExactText text = text_of_case(c);
    CAPTURE(text.view());
    const Ids ids = c.at("ids").get<Ids>();
    const Ids off = c.value("ids_parse_special_off", c.at("ids")).get<Ids>();
    CHECK(t.encode(text.view()) == ids);
    CHECK(t.encode(text.view(), {.parse_special = false}) == off);
    CHECK(t.encode(std::vector<ChatPiece>{{std::string(text.view())}}) == off);
    CHECK(t.encode(text.view(), {.add_special = true}) ==
          c.value("ids_add_special", c.at("ids")).get<Ids>());
    const std::string shown = c.at("decoded");
    CHECK(t.decode(ids, false) == shown);
    CHECK(t.decode(ids, true) == c.value("decoded_skip_special", shown));
}

}  // namespace hf::test
