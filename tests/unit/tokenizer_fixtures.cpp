// Encoding and decoding against what Hugging Face's tokenizers gave for the same files.
#include "libcore/text/pretokenize.h"
#include "libcore/text/unicode.h"
#include "tests/unit/tokenizer_files.h"

using namespace hf;
using namespace hf::test;

TEST_CASE("tokenizer: every text gives the ids of the reference, and they its text") {
    for (const std::string& folder : tokenizer_folders()) {
        CAPTURE(folder);
        const Tokenizer tokenizer = load_tokenizer(folder);
        const Json cases = read_json(folder + "/cases.json").at("cases");
        REQUIRE(cases.size() > 200);
        for (const Json& c : cases) check_case(tokenizer, c);
    }
}

TEST_CASE("tokenizer: Metaspace puts spaces and cuts at them as the reference does") {
    const std::string folder = data_path("tokenizers/small_llama2");
    const Json fixture = read_json(folder + "/cases.json");
    Json file = read_json(folder + "/tokenizer.json");
    file["normalizer"] = nullptr;
    CHECK(fixture.at("variants").size() == 3);
    for (const auto& [field, pre_tokenizer] : fixture.at("variants").items()) {
        CAPTURE(field);
        file["pre_tokenizer"] = pre_tokenizer;
        const Tokenizer tokenizer = Tokenizer::from_json("f.json", file.dump());
        int differ = 0;
        for (const Json& c : fixture.at("cases")) {
            const std::string text = c.at("text");
            CAPTURE(text);
            differ += c.contains(field);
            CHECK(tokenizer.encode(text) == c.value(field, c.at("ids")).get<Ids>());
        }
        CHECK(differ >= 10);
    }
}

TEST_CASE("tokenizer: added tokens take the white space they ask for, before or after NFC") {
    const Json fixture = read_json(data_path("tokenizers/added_tokens.json"));
    Json file = read_json(data_path("tokenizers/small_qwen2/tokenizer.json"));
    for (const Json& token : fixture.at("added_tokens")) file["added_tokens"].push_back(token);
    const Tokenizer tokenizer = Tokenizer::from_json("f.json", file.dump());
    for (const Json& c : fixture.at("cases")) {
        const std::string text = c.at("text");
        CAPTURE(text);
        CHECK(tokenizer.encode(text) == c.at("ids").get<Ids>());
        CHECK(tokenizer.decode(c.at("ids").get<Ids>(), false) ==
              c.at("decoded").get<std::string>());
    }
}

TEST_CASE("tokenizer: normalised text is cut into the pieces of the reference") {
    const std::pair<const char*, const char*> patterns[] = {
        {"small_qwen2", "qwen2"}, {"small_qwen35", "qwen35"}, {"small_llama3", "llama3"},
        {"qwen35", "qwen35"},     {"smollm2", "smollm"},
    };
    for (const auto& [name, pattern] : patterns) {
        const bool is_small = std::string_view(name).starts_with("small_");
        const std::string folder =
            is_small ? data_path("tokenizers/" + std::string(name)) : real_tokenizer(name);
        if (folder.empty()) continue;
        CAPTURE(folder);
        const bool is_nfc = read_json(folder + "/tokenizer.json").at("normalizer").is_object();
        const Json cases = read_json(folder + "/cases.json").at("cases");
        for (const Json& c : cases) {
            if (!c.contains("pieces")) continue;
            const std::string valid = replace_invalid_utf8(text_of_case(c).view());
            const ExactText text(is_nfc ? nfc(valid) : valid);
            CAPTURE(text.view());
            std::vector<std::string> pieces;
            for (size_t at = 0, end; at < text.view().size(); at = end) {
                end = split_pattern(pattern).piece_end(text.view(), at);
                REQUIRE(end > at);
                pieces.emplace_back(text.view().substr(at, end - at));
            }
            CHECK(pieces == c.at("pieces").get<std::vector<std::string>>());
        }
    }
}

TEST_CASE("tokenizer: invalid UTF-8 is replaced as in the reference") {
    for (const std::string& folder : tokenizer_folders()) {
        const Json cases = read_json(folder + "/cases.json").at("cases");
        for (const Json& c : cases)
            if (c.contains("bytes_hex"))
                CHECK(replace_invalid_utf8(text_of_case(c).view()) ==
                      c.at("text_after_replacement").get<std::string>());
    }
}

TEST_CASE("tokenizer: the demo model's texts give the ids of the reference") {
    const Tokenizer t = load_tokenizer(demo_model_path());
    const Json cases = read_json(demo_model_path() + "/golden.json").at("tokenizer");
    REQUIRE(!cases.empty());
    for (const Json& c : cases) {
        const std::string text = c.at("text");
        CAPTURE(text);
        CHECK(t.encode(text) == c.at("ids").get<Ids>());
    }
}

TEST_CASE("tokenizer: every token decodes to its bytes, and unknown ids to nothing") {
    for (const std::string& folder : tokenizer_folders()) {
        const Tokenizer t = load_tokenizer(folder);
        for (int32_t id = 0; id < t.known_ids(); ++id) {
            if (t.bytes(id).empty()) FAIL_CHECK("no bytes for ", id);
        }
        for (const int32_t id : {-1, t.known_ids(), INT32_MAX, INT32_MIN}) {
            CHECK(t.bytes(id).empty());
            CHECK_FALSE(t.is_known(id));
            CHECK_FALSE(t.is_special(id));
            CHECK(t.decode(Ids{id}, false).empty());
        }
    }
}

TEST_CASE("tokenizer: every token is found by its bytes") {
    const Tokenizer t = load_tokenizer(data_path("tokenizers/small_qwen35"));
    for (int32_t id = 0; id < t.known_ids(); ++id) CHECK(t.id_of(t.bytes(id)) == id);
}

TEST_CASE("tokenizer: special tokens are those the file calls special") {
    const std::string folder = data_path("tokenizers/small_qwen35");
    const Tokenizer t = load_tokenizer(folder);
    const Json tokens = read_json(folder + "/tokenizer.json").at("added_tokens");
    for (const Json& token : tokens) {
        const std::string text = token.at("content");
        CAPTURE(text);
        CHECK(t.id_of(text) == token.at("id").get<int32_t>());
        CHECK(t.is_special(token.at("id").get<int32_t>()) == token.at("special").get<bool>());
    }
    CHECK_FALSE(t.id_of("<|no such token|>"));
    CHECK_FALSE(t.id_of(""));
}
