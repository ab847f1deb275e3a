// HFQ files: what is read from good ones.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "libcore/file/hfq.h"
#include "libcore/file/hfq_gguf.h"
#include "tests/support/data.h"
#include "tests/support/hfq_writer.h"
#include "tests/unit/temp_folder.h"

namespace {

using namespace hf;
using namespace hf::test;
using nlohmann::json;

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A tensor whose bytes tell tensors apart.
HfqTensorParts tensor(const std::string& name, uint8_t format, std::vector<uint32_t> dims,
                      size_t bytes) {
    std::string data;
    for (size_t i = 0; i < bytes; ++i) data += char(i * 37 + name.back());
    return {name, format, std::move(dims), data};
}

TEST_CASE("hfq: tensors have the name, shape, format and bytes that were written") {
    HfqParts parts;
    parts.tensors = {tensor("model.norm.weight", 1, {3}, 6),
                     tensor("a.weight", 3, {2, 64}, 136),        // q8_0
                     tensor("b.weight", 7, {2, 130}, 2 * 144),   // rows of two padded groups
                     tensor("conv.weight", 3, {24, 1, 4}, 102),  // groups across rows
                     tensor("routing", 22, {5}, 20),             // known by name only
                     tensor("future", 99, {3}, 1)};
    struct Expected {
        const char *name, *dtype, *codec;
        std::vector<uint64_t> dims;
        Shape shape;
    };
    const Expected kExpected[] = {
        {"a.weight", "q8_0", "q8_0", {2, 64}, {2, 64}},
        {"b.weight", "hfq4g128", "hfq4g128", {2, 130}, {2, 130}},
        {"conv.weight", "q8_0", "q8_0", {24, 1, 4}, {1, 96}},
        {"future", "99 (unknown)", nullptr, {3}, {1, 3}},
        {"model.norm.weight", "f16", "f16", {3}, {1, 3}},
        {"routing", "22 (TidI32)", nullptr, {5}, {1, 5}},
    };
    const ExactBytes file(parts.bytes());
    const ModelFile model = read_hfq(file.first(file.size), "x", {});
    CHECK(model.container == "hfq");
    CHECK(model.naming == Naming::hugging_face);
    CHECK(model.values == Values::hugging_face);
    CHECK(model.gguf.empty());
    REQUIRE(model.tensors.size() == std::size(kExpected));
    for (size_t i = 0; i < std::size(kExpected); ++i) {
        const TensorView& t = model.tensors[i];
        const Expected& e = kExpected[i];
        CAPTURE(e.name);
        CHECK(t.name == e.name);
        CHECK(t.dtype == e.dtype);
        CHECK((t.codec ? t.codec->name : "") == (e.codec ? e.codec : ""));
        CHECK(std::vector(t.dims.begin(), t.dims.begin() + t.n_dims) == e.dims);
        CHECK(t.shape == e.shape);
        CHECK(t.bytes.data() == file.bytes.get() + t.offset);
        for (const HfqTensorParts& p : parts.tensors)
            if (p.name == t.name) CHECK(text_of(t.bytes) == p.data);
    }
}

TEST_CASE("hfq: a tensor of every format that HFQ has is read with its codec") {
    for (const Codec& codec : codecs()) {
        if (codec.ids.hfq < 0) continue;
        CAPTURE(codec.name);
        const Shape shape{3, 2 * cols_unit(codec)};
        HfqParts parts;
        parts.tensors = {tensor("a.weight", uint8_t(codec.ids.hfq), {3, uint32_t(shape.cols)},
                                tensor_bytes(codec, shape))};
        if (codec.sidecar == Sidecar::levels)
            parts.tensors.push_back({"a.lloyd_levels.weight", 2, {16}, std::string(64, '\0')});
        const ExactBytes file(parts.bytes());
        const ModelFile model = read_hfq(file.first(file.size), "x", {});
        const TensorView* t = model.find("a.weight");
        REQUIRE(t);
        CHECK(t->codec == &codec);
        CHECK(t->dtype == codec.name);
        CHECK(t->shape == shape);
        CHECK(text_of(t->bytes) == parts.tensors[0].data);
    }
}

TEST_CASE("hfq: the smallest file of the format's description is read") {
    const std::string index("\1\0\0\0\1\0a\2\1\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0", 25);
    std::string file("HFQM\1\0\0\0\0\0\0\0\1\0\0\0\x20\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0", 32);
    file += R"({"config":{}})" + index;
    file.resize(4096);
    file += std::string("\0\0\x80\x3F", 4);
    const ExactBytes exact(file);
    const ModelFile model = read_hfq(exact.first(exact.size), "x", {});
    REQUIRE(model.tensors.size() == 1);
    CHECK(model.tensors[0].name == "a");
    float value = 0;
    std::memcpy(&value, model.tensors[0].bytes.data(), 4);
    CHECK(value == 1.0f);
}

TEST_CASE("hfq: an opened file is mapped, and its views stay valid when the model moves") {
    const TempFolder folder;
    HfqParts parts;
    parts.tensors = {tensor("a", 2, {2}, 8)};
    folder.write("x", parts.bytes());
    ModelFile first = open_model_file(folder / "x", {});
    const ModelFile second = std::move(first);
    REQUIRE(second.files.size() == 1);
    CHECK(second.files[0].path() == folder / "x");
    CHECK(second.path == folder / "x");
    CHECK(text_of(second.find("a")->bytes) == parts.tensors[0].data);
}

TEST_CASE("hfq: texts are the ones that a folder has") {
    const std::string demo = demo_model_path();
    const ModelFile folder = open_model_file(demo, {});
    HfqParts parts;
    parts.metadata = json{{"architecture", "qwen3_5"},
                          {"config", json::parse(folder.config)},
                          {"generation_config", json::parse(folder.generation_config)},
                          {"tokenizer", folder.tokenizer},
                          {"tokenizer_config", json::parse(folder.tokenizer_config)},
                          {"imatrix", {{"unknown", {1, 2.5, nullptr}}}}}
                         .dump();
    const ExactBytes file(parts.bytes());
    const ModelFile model = read_hfq(file.first(file.size), "x", {});
    CHECK(json::parse(model.config) == json::parse(folder.config));
    CHECK(json::parse(model.generation_config) == json::parse(folder.generation_config));
    CHECK(json::parse(model.tokenizer_config) == json::parse(folder.tokenizer_config));
    CHECK(model.tokenizer == folder.tokenizer);
    CHECK(model.chat_template == folder.chat_template);
    CHECK(!model.chat_template.empty());
}

TEST_CASE("hfq: texts that are null, absent or an empty tokenizer are empty") {
    for (const char* metadata :
         {R"({"config":{}})",
          R"( {"config":{},"tokenizer":"{}","tokenizer_config":null,"generation_config":null})",
          "\n{\"config\" : {},\"source\":null,\"architecture\":null,\"tokenizer\":null}"}) {
        CAPTURE(metadata);
        HfqParts parts;
        parts.metadata = metadata;
        const ExactBytes file(parts.bytes());
        const ModelFile model = read_hfq(file.first(file.size), "x", {});
        CHECK(model.config == "{}");
        CHECK(model.tokenizer.empty());
        CHECK(model.tokenizer_config.empty());
        CHECK(model.generation_config.empty());
        CHECK(model.chat_template.empty());
    }
}

TEST_CASE("hfq: what follows the tensors is not read") {
    HfqParts parts, second;
    second.arch_id = 21;
    second.tensors = {tensor("eh_proj", 2, {1}, 4)};
    parts.tensors = {tensor("a", 2, {1}, 4)};
    const size_t end = parts.bytes().size();
    std::string trailer = "HFBNDMTP";
    put(trailer, uint64_t(end));
    for (const std::string& tail : {std::string("anything"), second.bytes() + trailer}) {
        parts.tail = tail;
        const ExactBytes file(parts.bytes());
        const ModelFile model = read_hfq(file.first(file.size), "x", {});
        REQUIRE(model.tensors.size() == 1);
        CHECK(model.tensors[0].name == "a");
    }
}

TEST_CASE("hfq: sidecars are tensors like others") {
    HfqParts parts;
    parts.tensors = {tensor("a.weight", 13, {1, 256}, 136),
                     {"a.awq_scale.weight", 1, {256}, std::string()},
                     tensor("b.weight", 52, {1, 256}, 136),
                     {"b.lloyd_levels.weight", 2, {16}, std::string(64, '\0')}};
    for (int i = 0; i < 256; ++i) put(parts.tensors[1].data, uint16_t(0x3C00));  // 1
    const ExactBytes file(parts.bytes());
    CHECK(read_hfq(file.first(file.size), "x", {}).tensors.size() == 4);
}

// --- made from GGUF

TEST_CASE("hfq: a file made from a GGUF file is read as that file") {
    HfqParts parts;
    parts.arch_id = 0;
    parts.metadata = json{{"architecture", "llama"},
                          {"source", "gguf"},
                          {"config", {{"model_type", "llama"}}},
                          {"gguf_meta",
                           {{"general.architecture", "llama"},
                            {"llama.block_count", 1},
                            {"llama.rope.freq_base", 500000.0},
                            {"tokenizer.chat_template", "{{ x }}"},
                            {"tokenizer.ggml.add_bos_token", true},
                            {"tokenizer.ggml.tokens", {"a", "\u00e9\n", ""}},
                            {"tokenizer.ggml.token_type", {1, 3, -1}},
                            {"tokenizer.ggml.scores", {0, -1.5, 2}},
                            {"none", nullptr},
                            {"empty", json::array()}}}}
                         .dump();
    parts.tensors = {tensor("model.embed_tokens.weight", 3, {64, 3}, 3 * 68),
                     tensor("model.layers.0.self_attn.q_proj.weight", 1, {64, 2}, 256),
                     tensor("blk.0.attn_q.bias", 1, {2}, 4)};
    const ExactBytes file(parts.bytes());
    const ModelFile model = read_hfq(file.first(file.size), "x", {});
    CHECK(model.container == "hfq");
    CHECK(model.naming == Naming::gguf);
    CHECK(model.values == Values::gguf);
    CHECK(model.config.empty());
    CHECK(model.chat_template == "{{ x }}");
    REQUIRE(model.find("token_embd.weight"));
    CHECK(model.find("token_embd.weight")->shape == Shape{3, 64});
    CHECK(model.find("blk.0.attn_q.weight")->shape == Shape{2, 64});
    CHECK(model.find("blk.0.attn_q.bias")->shape == Shape{1, 2});

    const GgufKeys& keys = model.gguf;
    CHECK(keys.uint("llama.block_count", 1, 1) == 1);
    CHECK(keys.number("llama.rope.freq_base", 1, 1e9) == 500000.0);
    CHECK(keys.text("general.architecture", "") == "llama");
    CHECK(keys.boolean("tokenizer.ggml.add_bos_token", false));
    std::vector<std::string> tokens;
    for (const std::string_view token : keys.strings("tokenizer.ggml.tokens"))
        tokens.emplace_back(token);
    CHECK(tokens == std::vector<std::string>{"a", "\u00e9\n", ""});
    CHECK(keys.ints("tokenizer.ggml.token_type") == std::vector<int32_t>{1, 3, -1});
    CHECK(keys.floats("tokenizer.ggml.scores") == std::vector<float>{0, -1.5, 2});
    CHECK(!keys.has("none"));
    CHECK(keys.strings("empty").size() == 0);
    CHECK(keys.all().size() == 9);
}

TEST_CASE("hfq: names of tensors are turned back into GGUF's") {
    const std::pair<const char*, const char*> kNames[] = {
        {"model.embed_tokens.weight", "token_embd.weight"},
        {"lm_head.weight", "output.weight"},
        {"model.norm.weight", "output_norm.weight"},
        {"model.layers.12.input_layernorm.weight", "blk.12.attn_norm.weight"},
        {"model.layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight"},
        {"model.layers.0.self_attn.o_proj.weight", "blk.0.attn_output.weight"},
        {"model.layers.0.self_attn.k_norm.weight", "blk.0.attn_k_norm.weight"},
        {"model.layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight"},
        {"model.layers.0.ssm_conv1d.weight", "blk.0.ssm_conv1d.weight"},
        {"model.layers.0.post_attention_norm.weight", "blk.0.post_attention_norm.weight"},
        {"blk.0.ssm_dt.bias", "blk.0.ssm_dt.bias"},
        {"rope_freqs.weight", "rope_freqs.weight"},
        {"model.layers.weight", "model.layers.weight"},
        {"model.layers.0.weight", "model.layers.0.weight"},
    };
    for (const auto& [name, gguf] : kNames) {
        CAPTURE(name);
        CHECK(gguf_name_of(name) == gguf);
    }
}

TEST_CASE("hfq: a header with a vocabulary of 250,000 tokens is read at once") {
    json vocab, merges = json::array(), tokens = json::array();
    for (int i = 0; i < 250'000; ++i) {
        vocab[fmt::format("token\u0120{}", i)] = i;
        merges.push_back(fmt::format("tok en{}", i));
        tokens.push_back(fmt::format("token\u0120{}", i));
    }
    const std::string tokenizer = json{{"model", {{"vocab", vocab}, {"merges", merges}}}}.dump();
    const json kMetadata[] = {
        {{"config", json::object()}, {"tokenizer", tokenizer}},
        {{"config", json::object()},
         {"source", "gguf"},
         {"gguf_meta",
          {{"tokenizer.ggml.tokens", tokens},
           {"tokenizer.ggml.merges", merges},
           {"tokenizer.ggml.token_type", std::vector<int>(250'000, 1)}}}},
    };
    for (const json& metadata : kMetadata) {
        HfqParts parts;
        parts.metadata = metadata.dump();
        const ExactBytes file(parts.bytes());
        CHECK(cpu_seconds([&] { read_hfq(file.first(file.size), "x", {}); }) < kHeaderSeconds);
    }
}

}  // namespace
