// Model folders: what is read from good ones, and what is wrong with bad ones.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "libcore/file/model_file.h"
#include "tests/support/data.h"
#include "tests/unit/temp_folder.h"

namespace {

using namespace hf;
using namespace hf::test;
using nlohmann::json;

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_CASE("folder: every tensor of a real model has the name, shape, type and bytes of its file") {
    for (const std::string& path : {demo_model_path(), data_path("models/tiny_qwen35_a"),
                                    data_path("models/tiny_qwen35_b")}) {
        CAPTURE(path);
        const std::string file = read_file(path + "/model.safetensors");
        uint64_t header_bytes;
        std::memcpy(&header_bytes, file.data(), 8);
        json header = json::parse(file.substr(8, header_bytes));
        header.erase("__metadata__");

        const ModelFile model = open_model_file(path, {});
        CHECK(model.path == path);
        CHECK(model.container == "safetensors");
        CHECK(model.naming == Naming::hugging_face);
        REQUIRE(model.files.size() == 1);
        CHECK(model.files[0].path() == path + "/model.safetensors");
        CHECK(model.config == read_file(path + "/config.json"));
        REQUIRE(model.tensors.size() == header.size());
        for (const auto& [name, entry] : header.items()) {
            CAPTURE(name);
            const TensorView* t = model.find(name);
            REQUIRE(t);
            const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
            CHECK(t->dtype == entry["dtype"].get<std::string>());
            CHECK(std::vector(t->dims.begin(), t->dims.begin() + t->n_dims) ==
                  entry["shape"].get<std::vector<uint64_t>>());
            CHECK(t->offset == 8 + header_bytes + begin);
            CHECK(t->bytes.data() == model.files[0].bytes().data() + t->offset);
            CHECK(text_of(t->bytes) == std::string_view(file).substr(t->offset, end - begin));
            REQUIRE(t->codec);
            CHECK(t->codec->ids.safetensors == t->dtype);
            CHECK(t->shape.rows * t->codec->row_bytes(t->shape.cols) == t->bytes.size());
        }
        CHECK(!model.find("model.embed_tokens.weigh"));
        CHECK(!model.find("zzz"));
        CHECK(!model.find(""));
    }
}

TEST_CASE("folder: the texts beside the weights are read, and mtp.safetensors is left alone") {
    const ModelFile model = open_model_file(demo_model_path() + "/", {});
    CHECK(model.generation_config == read_file(demo_model_path() + "/generation_config.json"));
    CHECK(model.tokenizer == read_file(demo_model_path() + "/tokenizer.json"));
    CHECK(model.tokenizer_config == read_file(demo_model_path() + "/tokenizer_config.json"));
    CHECK(model.chat_template ==
          json::parse(model.tokenizer_config)["chat_template"].get<std::string>());
    CHECK(!model.find("mtp.fc.weight"));

    const ModelFile bare = open_model_file(data_path("models/tiny_qwen35_a"), {});
    CHECK(bare.generation_config.empty());
    CHECK(bare.tokenizer.empty());
    CHECK(bare.tokenizer_config.empty());
    CHECK(bare.chat_template.empty());
}

const char* const kHeader = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
const char* const kOther = R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                           R"("c":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})";
const char* const kIndexName = "model.safetensors.index.json";

/// A folder with one file of weights.
void write_whole(const TempFolder& folder) {
    folder.write("config.json", "{}");
    folder.write("model.safetensors", safetensors(kHeader, 4));
}

/// The same with two shards.
void write_shards(const TempFolder& folder) {
    folder.write("config.json", "{}");
    folder.write("one.safetensors", safetensors(kHeader, 4));
    folder.write("two.safetensors", safetensors(kOther, 3));
    folder.write(kIndexName, R"({"metadata":{"total_size":7},"weight_map":{"c":"two.safetensors",)"
                             R"("a":"one.safetensors","b":"two.safetensors"}})");
}

TEST_CASE("folder: the views of a moved model stay valid") {
    const TempFolder folder;
    write_shards(folder);
    ModelFile first = open_model_file(folder.path(), {});
    const ModelFile second = std::move(first);
    CHECK(text_of(second.find("b")->bytes) == safetensors("", 2).substr(8));
}

TEST_CASE("folder: shards are read as the index has them") {
    const TempFolder folder;
    write_shards(folder);
    folder.write("mtp.safetensors", "not looked at");
    const ModelFile model = open_model_file(folder.path(), {});
    REQUIRE(model.files.size() == 2);
    REQUIRE(model.tensors.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
        const TensorView& t = model.tensors[i];
        CAPTURE(t.name);
        CHECK(t.name == std::string(1, char('a' + i)));
        CHECK(model.find(t.name) == &t);
        CHECK(model.files[t.file].path() == folder / (i == 0 ? "one" : "two") + ".safetensors");
        CHECK(t.bytes.data() == model.files[t.file].bytes().data() + t.offset);
    }
}

/// A good folder, what is done to it, and the words that it is refused with.
struct Damage {
    std::string words;
    void (*make)(const TempFolder&);
    std::function<void(const TempFolder&)> harm;
};

std::function<void(const TempFolder&)> index_is(const std::string& text) {
    return [=](const TempFolder& folder) { folder.write(kIndexName, text); };
}
std::function<void(const TempFolder&)> weight_map_is(const std::string& text) {
    return index_is(R"({"weight_map":)" + text + "}");
}
std::function<void(const TempFolder&)> without(const std::string& name) {
    return [=](const TempFolder& folder) { std::filesystem::remove(folder / name); };
}
std::function<void(const TempFolder&)> with(const std::string& name, const std::string& text) {
    return [=](const TempFolder& folder) { folder.write(name, text); };
}
/// A file of that many bytes that takes no room.
std::function<void(const TempFolder&)> with_size(const std::string& name, size_t bytes) {
    return [=](const TempFolder& folder) {
        folder.write(name, "");
        std::filesystem::resize_file(folder / name, bytes);
    };
}

const Damage kDamages[] = {
    {"has no config.json", write_whole, without("config.json")},
    {"config.json + is empty", write_whole, with("config.json", "")},
    {"config.json + 16777217 bytes + at most 16777216", write_whole,
     with_size("config.json", (16 << 20) + 1)},
    {"tokenizer.json + 268435457 bytes", write_whole, with_size("tokenizer.json", (256 << 20) + 1)},
    {"chat_template.jinja + at most", write_whole,
     with_size("chat_template.jinja", (16 << 20) + 1)},
    {"tokenizer.json + is a folder", write_whole,
     [](const TempFolder& folder) {
         std::filesystem::create_directory(folder / "tokenizer.json");
     }},
    {"tokenizer.json + No such file", write_whole,
     [](const TempFolder& folder) {
         std::filesystem::create_symlink("gone", folder / "tokenizer.json");
     }},
    {"tokenizer_config.json + unusable JSON", write_whole,
     with("tokenizer_config.json", "{\"a\":1")},
    {"tokenizer_config.json + unusable JSON", write_whole, with("tokenizer_config.json", "[]")},
    {"'chat_template' is neither", write_whole,
     with("tokenizer_config.json", R"({"chat_template":7})")},
    {"has neither model.safetensors nor model.safetensors.index.json", write_whole,
     without("model.safetensors")},
    {"model.safetensors + No such file", write_whole,
     [](const TempFolder& folder) {
         std::filesystem::remove(folder / "model.safetensors");
         std::filesystem::create_symlink("gone", folder / "model.safetensors");
     }},
    {"model.safetensors + bytes are missing", write_whole,
     [](const TempFolder& folder) {
         std::filesystem::resize_file(folder / "model.safetensors", 30);
     }},
    {"index.json + 67108865 bytes", write_shards, with_size(kIndexName, (64 << 20) + 1)},
    {"index.json + unusable JSON", write_shards, index_is("{")},
    {"index.json + not a JSON object", write_shards, index_is("[]")},
    {"'weight_map' is missing or empty", write_shards, index_is(R"({"metadata":{}})")},
    {"'weight_map' is missing or empty", write_shards, weight_map_is("{}")},
    {"'weight_map' is not a JSON object", write_shards, weight_map_is("[]")},
    {"shard of tensor 'a' is not a string", write_shards, weight_map_is(R"({"a":1})")},
    {"'' of tensor 'a' is not the plain name", write_shards, weight_map_is(R"({"a":""})")},
    {"'..' of tensor 'a' is not the plain name", write_shards, weight_map_is(R"({"a":".."})")},
    {"'../x' of tensor 'a' is not the plain name", write_shards, weight_map_is(R"({"a":"../x"})")},
    {"'/etc/passwd' of tensor 'a' is not the plain name", write_shards,
     weight_map_is(R"({"a":"/etc/passwd"})")},
    {"'one.safetensors?' of tensor 'a' is not the plain name", write_shards,
     weight_map_is(R"({"a":"one.safetensors\u0000"})")},
    {"tensor 'a' is there twice", write_shards,
     weight_map_is(R"({"a":"one.safetensors","a":"one.safetensors"})")},
    {"1 of 2 shards are missing + 'two.safetensors'", write_shards, without("two.safetensors")},
    {"2 of 2 shards are missing + 'two.safetensors'", write_shards,
     [](const TempFolder& folder) {
         std::filesystem::remove(folder / "one.safetensors");
         std::filesystem::remove(folder / "two.safetensors");
     }},
    {"two.safetensors + bytes are missing", write_shards,
     [](const TempFolder& folder) {
         std::filesystem::resize_file(folder / "two.safetensors", 30);
     }},
    {"swapped", write_shards,
     [](const TempFolder& folder) {
         std::filesystem::rename(folder / "one.safetensors", folder / "x");
         std::filesystem::rename(folder / "two.safetensors", folder / "one.safetensors");
         std::filesystem::rename(folder / "x", folder / "two.safetensors");
     }},
    {"tensor 'a' should be in shard 'one.safetensors', but is in 'two.safetensors'", write_shards,
     with("two.safetensors", safetensors(kHeader, 4))},
    {"tensor 'c' is in shard 'two.safetensors', but the index does not list it", write_shards,
     weight_map_is(R"({"a":"one.safetensors","b":"two.safetensors"})")},
    {"tensor 'd' should be in shard 'one.safetensors', but is not there", write_shards,
     weight_map_is(
         R"({"a":"one.safetensors","b":"two.safetensors","c":"two.safetensors","d":"one.safetensors"})")},
};

TEST_CASE("folder: each kind of damage is named") {
    for (const Damage& damage : kDamages) {
        CAPTURE(damage.words);
        const TempFolder folder;
        damage.make(folder);
        REQUIRE(error_of([&] { open_model_file(folder.path(), {}); }) == "");
        damage.harm(folder);
        const std::string sentence = error_of([&] { open_model_file(folder.path(), {}); });
        CAPTURE(sentence);
        CHECK(sentence.starts_with(folder.path()));
        CHECK(has_words(sentence, damage.words));
    }
}

TEST_CASE("folder: an index of more tensors than a model may have is refused") {
    const TempFolder folder;
    write_shards(folder);
    std::string map = "{";
    for (int i = 0; i <= 131072; ++i)
        map += fmt::format("{}\"{}\":\"one.safetensors\"", i ? "," : "", i);
    weight_map_is(map + "}")(folder);
    CHECK(has_words(error_of([&] { open_model_file(folder.path(), {}); }),
                    "more than 131072 tensors"));
}

/// A template in a folder, what is taken, and whether something is said about it.
struct Template {
    const char* tokenizer_config;  // null: no such file
    const char* jinja;             // null: no such file
    std::string taken;
    bool warned;
};

const Template kTemplates[] = {
    {nullptr, nullptr, "", false},
    {"{}", nullptr, "", false},
    {R"({"chat_template":null,"other":[1.5]})", nullptr, "", false},
    {R"({"chat_template":"in \"it\"\n"})", nullptr, "in \"it\"\n", false},
    {R"({"chat_template":"inside"})", "{{ beside }}\n", "{{ beside }}\n", false},
    {nullptr, "{{ beside }}\n", "{{ beside }}\n", false},
    {R"({"chat_template":[{"name":"tool_use","template":"t"},{"template":"d","name":"default","x":0}]})",
     nullptr, "d", false},
    {R"({"chat_template":[{"name":"rag","template":"r"},{"name":"tool_use","template":"t"}]})",
     nullptr, "", true},
    {R"({"chat_template":[]})", nullptr, "", true},
};

TEST_CASE("folder: the chat template is the file, or else the one inside tokenizer_config.json") {
    for (const Template& t : kTemplates) {
        const TempFolder folder;
        write_whole(folder);
        if (t.tokenizer_config) folder.write("tokenizer_config.json", t.tokenizer_config);
        if (t.jinja) folder.write("chat_template.jinja", t.jinja);
        CAPTURE(t.taken);
        size_t warnings = 0;
        const Log log{
            [&](LogLevel level, std::string_view) { warnings += level == LogLevel::warn; }};
        CHECK(open_model_file(folder.path(), log).chat_template == t.taken);
        CHECK(warnings == size_t(t.warned));
    }
}

TEST_CASE("folder: model.safetensors goes before an index, and that is said") {
    const TempFolder folder;
    write_shards(folder);
    write_whole(folder);
    std::string said;
    const Log log{[&](LogLevel, std::string_view line) { said += line; }};
    CHECK(open_model_file(folder.path(), log).tensors.size() == 1);
    CHECK(has_words(said, "model.safetensors is used + index.json is ignored"));
}

TEST_CASE("folder: opening does not read the weights") {
    const TempFolder folder;
    const size_t kBytes = size_t(1) << 30;
    folder.write("config.json", "{}");
    folder.write(
        "model.safetensors",
        safetensors(
            fmt::format(R"({{"a":{{"dtype":"U8","shape":[{0}],"data_offsets":[0,{0}]}}}})", kBytes),
            0));
    const std::string path = folder / "model.safetensors";
    std::filesystem::resize_file(path, std::filesystem::file_size(path) + kBytes);  // takes no room
    const ModelFile model = open_model_file(folder.path(), {});
    const std::span<const std::byte> bytes = model.files[0].bytes();
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> resident(bytes.size() / page + 1);
    REQUIRE(mincore(const_cast<std::byte*>(bytes.data()), bytes.size(), resident.data()) == 0);
    size_t pages = 0;
    for (const unsigned char r : resident) pages += r & 1;
    CHECK(pages * page < (4 << 20));  // the kernel reads ahead a little
}

TEST_CASE("model file: what is no folder is told by its first bytes") {
    const TempFolder folder;
    write_whole(folder);
    folder.write("gguf", std::string("GGUF\3\0\0\0", 8));
    folder.write("hfq", std::string("HFQM\1\0\0\0", 8));
    folder.write("unfinished", "HFQ!" + std::string(28, '\0'));
    folder.write("text", "Once upon a time there was");
    folder.write("tiny", "x");
    folder.write("empty", "");
    const std::pair<std::string, std::string> kCases[] = {
        {"gguf", "the number of tensors takes 8 bytes at byte 8 + 8 bytes are missing"},
        {"hfq", "has 8 bytes + header alone takes 32 + 24 bytes are missing"},
        {"unfinished", "not finished by the program that wrote it"},
        {"model.safetensors", "is a safetensors file + give the folder that holds it"},
        {"text", "starts with 'Once upon a time' + no model + Hugging Face folders"},
        {"tiny", "starts with 'x' + no model"},
        {"empty", "the file is empty"},
        {"missing", "No such file"},
    };
    for (const auto& [name, words] : kCases) {
        CAPTURE(name);
        const std::string sentence = error_of([&] { open_model_file(folder / name, {}); });
        CAPTURE(sentence);
        CHECK(sentence.starts_with(folder / name + ": "));
        CHECK(has_words(sentence, words));
    }
}

}  // namespace
