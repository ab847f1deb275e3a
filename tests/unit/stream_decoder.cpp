// Printing tokens as they come.
#include "libcore/text/stream_decoder.h"

#include <random>

#include "libcore/text/unicode.h"
#include "tests/unit/tokenizer_files.h"

using namespace hf;
using namespace hf::test;

namespace {

std::vector<std::string> stream(const Tokenizer& t, const Ids& ids, std::string& flushed) {
    StreamDecoder decoder(t, false);
    std::vector<std::string> chunks;
    for (const int32_t id : ids) chunks.push_back(decoder.push(id));
    flushed = decoder.flush();
    return chunks;
}

/// The tokens of single bytes.
Ids byte_tokens(const Tokenizer& t, std::string_view bytes) {
    Ids ids;
    for (const char c : bytes) ids.push_back(t.id_of(std::string(1, c)).value());
    return ids;
}

}  // namespace

TEST_CASE("stream: bytes are held back while they may become a character, and no longer") {
    const Tokenizer t = load_tokenizer(data_path("tokenizers/small_qwen35"));
    using Chunks = std::vector<std::string>;
    struct Row {
        std::string bytes;
        Chunks chunks;
        std::string flush;
    };
    const Row rows[] = {
        {"a\u00E9", {"a", "", "\u00E9"}, ""},
        {"\U0001F600!", {"", "", "", "\U0001F600", "!"}, ""},
        {"\xF0\x9F\x98", {"", "", ""}, "\uFFFD"},  // ends too early
        {"\xE2\x82"
         "A",
         {"", "", "\uFFFDA"},
         ""},  // broken off
        {"\x80"
         "B",
         {"\uFFFD", "B"},
         ""},                                                  // no beginning
        {"\xC0\xAF", {"\uFFFD", "\uFFFD"}, ""},                // overlong
        {"\xF4\x90\x80", {"", "\uFFFD\uFFFD", "\uFFFD"}, ""},  // too large
        {"\xED\xA0\x80", {"", "", "\uFFFD\uFFFD\uFFFD"}, ""},  // a surrogate
        {"\xF0\x9F\xF0\x9F\x98\x80",
         {"", "", "\uFFFD", "", "", "\U0001F600"},
         ""},  // one in another
    };
    for (const Row& row : rows) {
        std::string flushed;
        CHECK(stream(t, byte_tokens(t, row.bytes), flushed) == row.chunks);
        CHECK(flushed == row.flush);
    }
}

TEST_CASE("stream: chunks are those of the reference") {
    for (const char* name : {"qwen35", "smollm2"}) {
        const std::string folder = real_tokenizer(name);
        if (folder.empty()) continue;
        const Tokenizer t = load_tokenizer(folder);
        const Json rows = read_json(folder + "/cases.json").at("streaming");
        REQUIRE(!rows.empty());
        for (const Json& row : rows) {
            CAPTURE(row.at("label").get<std::string>());
            std::string flushed;
            CHECK(stream(t, row.at("ids"), flushed) ==
                  row.at("chunks").get<std::vector<std::string>>());
            CHECK(flushed == row.at("flush").get<std::string>());
        }
    }
}

TEST_CASE("stream: chunks are valid UTF-8 and together what decode gives") {
    for (const char* name : {"small_qwen35", "small_llama2"}) {
        const Tokenizer t = load_tokenizer(data_path("tokenizers/" + std::string(name)));
        std::mt19937 random(/*seed=*/23);
        for (int round = 0; round < 1000; ++round) {
            const bool skip = round % 2 == 0;
            Ids ids(random() % 30);
            // mostly single bytes, a few words, special and unknown tokens
            for (int32_t& id : ids)
                id = int32_t(random() % (random() % 4 ? 256 : t.known_ids() + 10));
            StreamDecoder decoder(t, skip);
            std::string text;
            for (const int32_t id : ids) {
                const std::string chunk = decoder.push(id);
                CHECK(replace_invalid_utf8(chunk) == chunk);
                text += chunk;
            }
            text += decoder.flush();
            CHECK(text == t.decode(ids, skip));
            CHECK(decoder.flush().empty());
        }
    }
}

TEST_CASE("stream: the space that SentencePiece puts in front is not printed, others are") {
    const Tokenizer t = load_tokenizer(data_path("tokenizers/small_llama2"));
    const int32_t end = t.id_of("</s>").value(), space = t.id_of(" ").value();
    StreamDecoder decoder(t, true);
    for (int round = 0; round < 2; ++round) {  // as new after flush()
        CHECK(decoder.push(end) == "");        // prints nothing: the beginning is yet to come
        CHECK(decoder.push(t.encode("a")[0]) == "a");
        CHECK(decoder.push(t.encode("a")[0]) == " a");
        CHECK(decoder.push(space) == " ");
        CHECK(decoder.flush() == "");
    }
}

TEST_CASE("stream: special tokens print nothing when skipped") {
    const Tokenizer t = load_tokenizer(data_path("tokenizers/small_qwen35"));
    const int32_t end = t.id_of("<|im_end|>").value(), think = t.id_of("<think>").value();
    StreamDecoder shows(t, false), skips(t, true);
    CHECK(shows.push(end) == "<|im_end|>");
    CHECK(skips.push(end).empty());
    CHECK(skips.push(think) == "<think>");
}
