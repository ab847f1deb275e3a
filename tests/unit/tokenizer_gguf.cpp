// Tokenizers of whole models: the keys of GGUF files, and the tokenizer.json of folders.
#include "libcore/base/error.h"
#include "libcore/file/gguf.h"
#include "libcore/run/open_tokenizer.h"
#include "tests/support/gguf_writer.h"
#include "tests/unit/temp_folder.h"
#include "tests/unit/tokenizer_files.h"

using namespace hf;
using namespace hf::test;

TEST_CASE("open_tokenizer: the keys of a GGUF file give the ids that tokenizer.json gives") {
    for (const std::string& name : kSmallTokenizers) {
        CAPTURE(name);
        const std::string folder = data_path("tokenizers/" + name);
        const ModelFile file = open_gguf(folder + "/vocab.gguf", Log());
        const auto tokenizer = open_tokenizer(file);
        REQUIRE(tokenizer != nullptr);
        const Json cases = read_json(folder + "/cases.json").at("cases");
        for (const Json& c : cases) check_case(*tokenizer, c);

        const Tokenizer json = load_tokenizer(folder);
        CHECK(tokenizer->known_ids() == json.known_ids());  // and the padding is not known
        for (int32_t id = 0; id < json.known_ids(); ++id) {
            CHECK(tokenizer->bytes(id) == json.bytes(id));
            CHECK(tokenizer->is_special(id) == json.is_special(id));
        }
    }
}

TEST_CASE("open_tokenizer: a model without a tokenizer has none") {
    CHECK(open_tokenizer(ModelFile()) == nullptr);
    const TempFolder folder;
    for (const char* word : {"no_vocab", "none", "no_vocabulary"}) {
        GgufParts parts;
        std::string value;
        GgufParts::put_string(value, word);
        parts.keys = {{"tokenizer.ggml.model", kGgufString, value}};
        folder.write("model.gguf", parts.bytes());
        const ModelFile file = open_gguf(folder / "model.gguf", Log());
        if (word == std::string_view("no_vocabulary"))
            CHECK_THROWS_WITH_AS(open_tokenizer(file), doctest::Contains("not known"), Error);
        else
            CHECK(open_tokenizer(file) == nullptr);
    }
}

TEST_CASE("open_tokenizer: errors name the file") {
    ModelFile file;
    file.path = std::string("m");
    file.tokenizer = std::string("{}");
    file.container = "safetensors";
    CHECK_THROWS_WITH_AS(open_tokenizer(file), doctest::Contains("m/tokenizer.json: "), Error);
    file.container = "hfq";
    CHECK_THROWS_WITH_AS(open_tokenizer(file), doctest::Contains("m: tokenizer.json: "), Error);
}
