// GGUF files: what is read from good ones, of one file or of several.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "libcore/file/gguf.h"
#include "tests/support/data.h"
#include "tests/support/gguf_writer.h"
#include "tests/unit/temp_folder.h"

namespace {

using namespace hf;
using namespace hf::test;
using nlohmann::json;

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A tensor whose bytes tell tensors apart.
GgufTensorParts tensor(const std::string& name, std::vector<uint64_t> dims, uint32_t type,
                       size_t bytes) {
    std::string data;
    for (size_t i = 0; i < bytes; ++i) data += char(i * 37 + name.back());
    return {name, std::move(dims), type, data};
}

TEST_CASE("gguf: tensors have the name, shape, type and bytes that were written") {
    GgufParts parts;
    parts.keys = {gguf_key("general.architecture", "x")};
    parts.tensors = {tensor("b.f32", {3}, 0, 12), tensor("a.q8_0", {64, 2, 1, 3}, 8, 408),
                     tensor("c.iq2_xs", {256, 5}, 17, 370), tensor("d.i64", {1, 2, 3}, 27, 48)};
    struct Expected {
        const char *name, *dtype, *codec;
        std::vector<uint64_t> dims;  // slowest first
        Shape shape;
    };
    const Expected kExpected[] = {
        {"a.q8_0", "Q8_0", "q8_0", {3, 1, 2, 64}, {6, 64}},
        {"b.f32", "F32", "f32", {3}, {1, 3}},
        {"c.iq2_xs", "IQ2_XS", nullptr, {5, 256}, {5, 256}},
        {"d.i64", "I64", nullptr, {3, 2, 1}, {6, 1}},
    };
    for (const uint32_t version : {2, 3})
        for (const uint64_t alignment : {1, 8, 32, 4096}) {
            CAPTURE(version);
            CAPTURE(alignment);
            parts.version = version;
            parts.alignment = alignment;
            parts.keys.resize(1);
            if (alignment != 32)
                parts.keys.push_back(gguf_key("general.alignment", uint32_t(alignment)));
            const ExactBytes file(parts.bytes());
            const GgufContents contents = read_gguf(file.first(file.size), "x", 3);
            REQUIRE(contents.tensors.size() == std::size(kExpected));
            for (size_t i = 0; i < std::size(kExpected); ++i) {
                const TensorView& t = contents.tensors[i];
                const Expected& e = kExpected[i];
                CAPTURE(e.name);
                CHECK(t.name == e.name);
                CHECK(t.dtype == e.dtype);
                CHECK((t.codec ? t.codec->name : "") == (e.codec ? e.codec : ""));
                CHECK(std::vector(t.dims.begin(), t.dims.begin() + t.n_dims) == e.dims);
                CHECK(t.shape == e.shape);
                CHECK(t.file == 3);
                CHECK(t.offset % alignment == 0);
                CHECK(t.bytes.data() == file.bytes.get() + t.offset);
                for (const GgufTensorParts& p : parts.tensors)
                    if (p.name == t.name) CHECK(text_of(t.bytes) == p.data);
            }
        }
}

TEST_CASE("gguf: a tensor of every format that GGUF has is read with its codec") {
    for (const Codec& codec : codecs()) {
        if (codec.ids.gguf < 0) continue;
        CAPTURE(codec.name);
        const Shape shape{3, 2 * cols_unit(codec)};
        GgufParts parts;
        parts.tensors = {tensor("a", {shape.cols, shape.rows}, uint32_t(codec.ids.gguf),
                                tensor_bytes(codec, shape))};
        const ExactBytes file(parts.bytes());
        const GgufContents contents = read_gguf(file.first(file.size), "x", 0);
        CHECK(contents.tensors[0].codec == &codec);
        CHECK(contents.tensors[0].shape == shape);
        CHECK(text_of(contents.tensors[0].bytes) == parts.tensors[0].data);
    }
}

TEST_CASE("gguf: data may have gaps and come in another order than the header") {
    GgufParts parts;
    parts.tensors = {tensor("a", {1}, 0, 4), tensor("b", {1}, 0, 128)};
    parts.tensors[0].offset = 64;
    parts.tensors[1].offset = 0;
    const ExactBytes file(parts.bytes());
    const GgufContents contents = read_gguf(file.first(file.size), "x", 0);
    CHECK(contents.tensors[0].offset == contents.tensors[1].offset + 64);
}

TEST_CASE("gguf: real models are read to their last byte, each tensor with a codec") {
    const std::pair<std::string, std::string> kModels[] = {
        {"tiny_llama.q4_0", "llama"},       {"tiny_llama.q8_0", "llama"},
        {"tiny_qwen2.q8_0", "qwen2"},       {"tiny_qwen3.q8_0", "qwen3"},
        {"tiny_qwen35_a.notok", "qwen35"},  {"tiny_qwen35_a.q8_0", "qwen35"},
        {"tiny_qwen35_b.q4_k_m", "qwen35"}, {"tiny_qwen35_b.q8_0", "qwen35"},
    };
    for (const auto& [name, architecture] : kModels) {
        CAPTURE(name);
        const std::string path = data_path("gguf/" + name + ".gguf");
        const ModelFile model = open_model_file(path, {});
        CHECK(model.path == path);
        CHECK(model.container == "gguf");
        CHECK(model.naming == Naming::gguf);
        CHECK(model.values == Values::gguf);
        CHECK(model.config.empty());
        CHECK(model.gguf.text("general.architecture", "") == architecture);
        const size_t dim = model.gguf.uint(architecture + ".embedding_length", 1, 1 << 20);
        CHECK(model.find("output_norm.weight")->shape == Shape{1, dim});
        CHECK(model.find("token_embd.weight")->shape.cols == dim);
        uint64_t end = 0;
        for (const TensorView& t : model.tensors) {
            CAPTURE(t.name);
            CHECK(t.codec);
            if (t.codec) CHECK(tensor_bytes(*t.codec, t.shape) == t.bytes.size());
            end = std::max(end, t.offset + t.bytes.size());
        }
        CHECK((end + 31) / 32 * 32 == model.files[0].bytes().size());
    }
}

TEST_CASE("gguf: weights of a real model that were not quantised equal Hugging Face's") {
    const ModelFile gguf = open_model_file(data_path("gguf/tiny_qwen3.q8_0.gguf"), {});
    const ModelFile folder = open_model_file(data_path("models/tiny_qwen3"), {});
    const std::pair<std::string, std::string> kNames[] = {
        {"output_norm.weight", "model.norm.weight"},
        {"blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"},
        {"blk.1.attn_q_norm.weight", "model.layers.1.self_attn.q_norm.weight"},
    };
    for (const auto& [ours, theirs] : kNames) {
        CAPTURE(ours);
        const TensorView *a = gguf.find(ours), *b = folder.find(theirs);
        REQUIRE(a);
        REQUIRE(b);
        REQUIRE(a->shape == b->shape);
        std::vector<float> x(a->shape.cols), y(b->shape.cols);
        a->codec->cpu.decode_row(view_of(*a->codec, a->bytes.data(), a->shape), 0, x.data());
        b->codec->cpu.decode_row(view_of(*b->codec, b->bytes.data(), b->shape), 0, y.data());
        CHECK(x == y);
    }
}

TEST_CASE("gguf: real vocabularies hold the tokens of tokenizer.json") {
    const std::string folder = data_path("tokenizers/small_qwen35");
    const json tokenizer = json::parse(read_file(folder + "/tokenizer.json"));
    const ModelFile model = open_model_file(folder + "/vocab.gguf", {});
    CHECK(model.tensors.empty());
    std::vector<std::string> tokens;
    for (const std::string_view token : model.gguf.strings("tokenizer.ggml.tokens"))
        tokens.emplace_back(token);
    CHECK(tokens.size() == model.gguf.strings("tokenizer.ggml.tokens").size());
    size_t found = 0;
    const auto check = [&](const std::string& token, size_t id) {
        REQUIRE(id < tokens.size());
        CHECK(tokens[id] == token);
        ++found;
    };
    for (const auto& [token, id] : tokenizer["model"]["vocab"].items()) check(token, id);
    for (const json& added : tokenizer["added_tokens"])
        if (!tokenizer["model"]["vocab"].contains(added["content"]))
            check(added["content"], added["id"]);
    const std::vector<int32_t> types = model.gguf.ints("tokenizer.ggml.token_type");
    CHECK(types.size() == tokens.size());
    const int32_t kUnused = 5;
    CHECK(found + size_t(std::ranges::count(types, kUnused)) == tokens.size());
}

TEST_CASE("gguf: the chat template of the keys is the model's") {
    const TempFolder folder;
    GgufParts parts;
    parts.keys = {gguf_key("tokenizer.chat_template", "{{ x }}")};
    folder.write("x.gguf", parts.bytes());
    CHECK(open_model_file(folder / "x.gguf", {}).chat_template == "{{ x }}");
}

TEST_CASE("gguf: a header with a vocabulary of 250,000 tokens is read at once") {
    std::vector<std::string> tokens, merges;
    for (int i = 0; i < 250'000; ++i) {
        tokens.push_back(fmt::format("token{}", i));
        merges.push_back(fmt::format("tok en{}", i));
    }
    GgufParts parts;
    parts.keys = {gguf_list("tokenizer.ggml.tokens", tokens),
                  gguf_list("tokenizer.ggml.merges", merges),
                  gguf_list("tokenizer.ggml.scores", std::vector<float>(tokens.size())),
                  gguf_list("tokenizer.ggml.token_type", std::vector<int32_t>(tokens.size(), 1))};
    const ExactBytes file(parts.bytes());
    CHECK(cpu_seconds([&] { read_gguf(file.first(file.size), "x", 0); }) < kHeaderSeconds);
}

// --- shards

/// Shard `number` (from 1) of `count`, with one tensor.
GgufParts shard(uint16_t number, uint16_t count) {
    GgufParts parts;
    parts.keys = {gguf_key("split.no", uint16_t(number - 1)), gguf_key("split.count", count),
                  gguf_key("split.tensors.count", int32_t(count))};
    if (number == 1) parts.keys.push_back(gguf_key("general.architecture", "llama"));
    parts.tensors = {tensor(fmt::format("t{}", number), {2}, 0, 8)};
    return parts;
}

std::string shard_name(int number, int count) {
    return fmt::format("m-{:05}-of-{:05}.gguf", number, count);
}

void write_shards(const TempFolder& folder) {
    for (uint16_t number = 1; number <= 3; ++number)
        folder.write(shard_name(number, 3), shard(number, 3).bytes());
}

TEST_CASE("gguf: shards are one model with the keys of the first") {
    const TempFolder folder;
    write_shards(folder);
    const ModelFile model = open_model_file(folder / shard_name(1, 3), {});
    CHECK(model.gguf.text("general.architecture", "") == "llama");
    REQUIRE(model.files.size() == 3);
    REQUIRE(model.tensors.size() == 3);
    for (uint32_t i = 0; i < 3; ++i) {
        const TensorView& t = model.tensors[i];
        CHECK(t.name == fmt::format("t{}", i + 1));
        CHECK(t.file == i);
        CHECK(model.files[i].path() == folder / shard_name(int(i) + 1, 3));
        CHECK(t.bytes.data() == model.files[i].bytes().data() + t.offset);
    }
}

TEST_CASE("gguf: one complete file may be called a shard, or say that it once was split") {
    const TempFolder folder;
    GgufParts parts = shard(1, 1);
    folder.write(shard_name(1, 1), parts.bytes());
    parts.keys = {};
    folder.write("n-00001-of-00001.gguf", parts.bytes());
    parts.keys = {gguf_key("split.count", uint16_t(0))};
    folder.write("whole.gguf", parts.bytes());
    for (const std::string& name :
         {shard_name(1, 1), std::string("n-00001-of-00001.gguf"), std::string("whole.gguf")}) {
        CAPTURE(name);
        CHECK(open_model_file(folder / name, {}).tensors.size() == 1);
    }
}

struct ShardDamage {
    std::string words;
    void (*harm)(const TempFolder&);
    std::string opened = shard_name(1, 3);
};

const ShardDamage kShardDamages[] = {
    {"1 of 3 shards are missing + m-00002-of-00003.gguf",
     [](const TempFolder& f) { std::filesystem::remove(f / shard_name(2, 3)); }},
    {"2 of 3 shards are missing + m-00002-of-00003.gguf",
     [](const TempFolder& f) {
         std::filesystem::remove(f / shard_name(2, 3));
         std::filesystem::remove(f / shard_name(3, 3));
     }},
    {"m-00002-of-00003.gguf: is shard 3 of 3 by its keys, but 2 of 3 by its name + swapped",
     [](const TempFolder& f) {
         f.write(shard_name(2, 3), shard(3, 3).bytes());
         f.write(shard_name(3, 3), shard(2, 3).bytes());
     }},
    {"m-00003-of-00003.gguf: is shard 3 of 4 by its keys, but 3 of 3 by its name",
     [](const TempFolder& f) { f.write(shard_name(3, 3), shard(3, 4).bytes()); }},
    {"m-00001-of-00003.gguf: is shard 1 of 1 by its keys, but 1 of 3 by its name",
     [](const TempFolder& f) { f.write(shard_name(1, 3), shard(1, 1).bytes()); }},
    {"is shard 2 of 3; give the first + m-00001-of-00003.gguf", [](const TempFolder&) {},
     shard_name(2, 3)},
    {"is shard 1 of 3, but its name does not end in -00001-of-00003.gguf",
     [](const TempFolder& f) { f.write("other.gguf", shard(1, 3).bytes()); }, "other.gguf"},
    {"'split.tensors.count' is 3, but the 3 shards have 4 tensors",
     [](const TempFolder& f) {
         GgufParts parts = shard(3, 3);
         parts.tensors.push_back(tensor("u", {1}, 0, 4));
         f.write(shard_name(3, 3), parts.bytes());
     }},
    {"'split.tensors.count' is missing",
     [](const TempFolder& f) {
         GgufParts parts = shard(1, 3);
         parts.keys.erase(parts.keys.begin() + 2);
         f.write(shard_name(1, 3), parts.bytes());
     }},
    {"tensor 't1' is there twice",
     [](const TempFolder& f) {
         GgufParts parts = shard(2, 3);
         parts.tensors[0].name = "t1";
         f.write(shard_name(2, 3), parts.bytes());
     }},
    {"m-00002-of-00003.gguf: + bytes are missing",
     [](const TempFolder& f) { std::filesystem::resize_file(f / shard_name(2, 3), 150); }},
};

TEST_CASE("gguf: each kind of damage to a set of shards is named") {
    for (const ShardDamage& damage : kShardDamages) {
        CAPTURE(damage.words);
        const TempFolder folder;
        write_shards(folder);
        damage.harm(folder);
        const std::string sentence = error_of([&] { open_model_file(folder / damage.opened, {}); });
        CAPTURE(sentence);
        CHECK(sentence.starts_with(folder.path()));
        CHECK(has_words(sentence, damage.words));
    }
}

}  // namespace
