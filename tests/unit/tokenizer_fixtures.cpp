// Encoding and decoding against what Hugging Face's tokenizers gave for the same files.
#include "libcore/text/unicode.h"
#include "tests/unit/tokenizer_files.h"

using namespace hf;
using namespace hf::test;

namespace {

std::string from_hex(const std::string& hex) {
    std::string bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes += char(std::stoi(hex.substr(i, 2), nullptr, 16));
    return bytes;
}

/// In memory that ends where the text ends.
std::vector<char> exact(const std::string& text) {
    return {text.begin(), text.end()};
}
std::string_view view(const std::vector<char>& text) {
    return {text.data(), text.size()};
}

/// Calls f(tokenizer, case) for every case of every tokenizer.
template <class F>
void for_each_case(F f) {
    for (const std::string& folder : tokenizer_folders()) {
        const Tokenizer tokenizer = load_tokenizer(folder);
        const Json cases = read_json(folder + "/cases.json").at("cases");
        REQUIRE(cases.size() > 200);
        for (const Json& c : cases) {
            CAPTURE(c.at("id").get<std::string>());
            f(tokenizer, c);
        }
    }
}

std::vector<char> input_of(const Json& c) {
    return exact(c.contains("bytes_hex") ? from_hex(c.at("bytes_hex"))
                                         : c.at("text").get<std::string>());
}

}  // namespace

TEST_CASE("tokenizer: every text gives the ids of the reference") {
    for_each_case([](const Tokenizer& t, const Json& c) {
        CHECK(t.encode(view(input_of(c))) == c.at("ids").get<Ids>());
    });
}

TEST_CASE(
    "tokenizer: with special parsing off special tokens are text, the others are still found") {
    for_each_case([](const Tokenizer& t, const Json& c) {
        const Ids want = c.value("ids_parse_special_off", c.at("ids")).get<Ids>();
        CHECK(t.encode(view(input_of(c)), {.parse_special = false}) == want);
        CHECK(t.encode(std::vector<ChatPiece>{{std::string(view(input_of(c)))}}) == want);
    });
}

TEST_CASE("tokenizer: ids decode to the text of the reference, special tokens shown or skipped") {
    for_each_case([](const Tokenizer& t, const Json& c) {
        const Ids ids = c.at("ids").get<Ids>();
        const std::string shown = c.at("decoded");
        CHECK(t.decode(ids, false) == shown);
        CHECK(t.decode(ids, true) == c.value("decoded_skip_special", shown));
    });
}

TEST_CASE("tokenizer: normalised text is cut into the pieces of the reference") {
    const auto rows = read_json(data_path("tokenizers/small_qwen35/tokenizer.json"))
                          .at("pre_tokenizer")
                          .at("pretokenizers");
    const SplitPattern* pattern =
        find_split_pattern(rows.at(0).at("pattern").at("Regex").get<std::string>());
    REQUIRE(pattern != nullptr);
    for_each_case([&](const Tokenizer&, const Json& c) {
        if (!c.contains("pieces")) return;
        const std::vector<char> text = exact(nfc(replace_invalid_utf8(view(input_of(c)))));
        std::vector<std::string> pieces;
        for (size_t at = 0, end; at < text.size(); at = end) {
            end = pattern->piece_end(view(text), at);
            REQUIRE(end > at);
            pieces.emplace_back(view(text).substr(at, end - at));
        }
        CHECK(pieces == c.at("pieces").get<std::vector<std::string>>());
    });
}

TEST_CASE("tokenizer: invalid UTF-8 is replaced as in the reference") {
    const std::string big = big_tokenizer_folder();
    if (big.empty()) return;
    const Json cases = read_json(big + "/cases.json").at("cases");
    for (const Json& c : cases)
        if (c.contains("bytes_hex"))
            CHECK(replace_invalid_utf8(view(input_of(c))) ==
                  c.at("text_after_replacement").get<std::string>());
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
