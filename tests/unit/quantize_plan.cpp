// What is decided before a file is written: formats, scales, texts.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "cpuexec/float16.h"
#include "libcore/base/error.h"
#include "libcore/file/gguf.h"
#include "libcore/file/json.h"
#include "libcore/quantize/awq.h"
#include "libcore/quantize/encoder.h"
#include "libcore/quantize/model_texts.h"
#include "libcore/quantize/policy.h"
#include "libcore/quantize/quantize_model.h"
#include "libcore/quantize/tokenizer_writer.h"
#include "tests/unit/tokenizer_files.h"

using namespace hf;
using namespace hf::test;

namespace {

SourceTensor tensor(Role role, Use use, Shape shape, std::string name = "model.x.weight") {
    SourceTensor t;
    t.name = std::move(name);
    t.role = role;
    t.use = use;
    t.shape = shape;
    t.dims = {shape.rows, shape.cols};
    return t;
}

std::string_view chosen(std::string_view format, const SourceTensor& t,
                        std::vector<Keep> keep = {}) {
    return choose_format({&format_by_name(format), std::move(keep)}, t, "m").name;
}

const SourceTensor kMatrix = tensor(Role::ffn_up, Use::matrix, {512, 1024});

/// A sentence with this fault, or "".
template <class Action>
std::string usage_error(Action&& action) {
    try {
        action();
    } catch (const Error& e) {
        return e.fault() == Fault::usage ? e.what() : "";
    }
    return "";
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("policy: each kind of tensor gets its format") {
    struct Case {
        std::string_view format;
        SourceTensor tensor;
        std::string_view chosen;
    };
    const auto table = tensor(Role::embedding, Use::matrix, {4096, 1024});
    const auto head = tensor(Role::head, Use::matrix, {4096, 1024});
    const auto gate = tensor(Role::delta_b, Use::matrix, {32, 1024});
    const auto norm = tensor(Role::attn_norm, Use::vector, {1, 1024});
    const auto conv = tensor(Role::delta_conv, Use::vector, {1, 4 * 4096});
    const auto ragged = tensor(Role::attn_q, Use::matrix, {896, 896});  // 3.5 groups of 256
    const auto odd = tensor(Role::attn_q, Use::matrix, {100, 100});
    const Case cases[] = {
        {"mq4", kMatrix, "mq4g256v2"},
        {"mq4", table, "q8_0"},
        {"mq4", head, "q8_0"},
        {"mq4", gate, "q8_0"},
        {"mq4", norm, "f16"},
        {"mq4", conv, "f16"},
        {"mq4", ragged, "hfq4g128"},
        {"mq3", ragged, "hfq4g128"},
        {"mq6", ragged, "q8_0"},
        {"mq5", ragged, "q8_0"},
        {"mq6", odd, "f16"},
        {"q8", odd, "f16"},
        {"mq4", odd, "hfq4g128"},
        {"hfq4g128", odd, "hfq4g128"},
        {"q8hfq", table, "q8hfq"},
        {"mq8g256", table, "q8_0"},
        {"f32", table, "f32"},
        {"f32", norm, "f32"},
        {"bf16", conv, "bf16"},
        {"f16", odd, "f16"},
        {"mq3", kMatrix, "mq3g256lloyd"},
        {"mq6", kMatrix, "mq6g256"},
        {"hfq4", kMatrix, "hfq4g256"},
        {"q8", kMatrix, "q8_0"},
    };
    for (const Case& c : cases) {
        CAPTURE(c.format);
        CAPTURE(c.chosen);
        CHECK(chosen(c.format, c.tensor) == c.chosen);
    }
}

TEST_CASE("policy: whatever is asked for, the format fits the rows and can be written") {
    for (const Encoder& encoder : encoders())
        for (const uint64_t cols : {1, 32, 100, 128, 256, 384, 896, 4096}) {
            const auto t = tensor(Role::ffn_up, Use::matrix, {100, cols});
            const Codec& codec = choose_format({encoder.codec, {}}, t, "m");
            CAPTURE(encoder.codec->name);
            CHECK(cols % cols_unit(codec) == 0);
            CHECK(encoder_of(codec) != nullptr);
            CHECK(codec.ids.hfq >= 0);
        }
}

TEST_CASE("policy: the last pattern that matches counts") {
    const std::vector<Keep> keep = {parse_keep("*=q8"), parse_keep("model.x.*=mq6"),
                                    parse_keep("*.y.*=f32")};
    CHECK(chosen("mq4", kMatrix, keep) == "mq6g256");
    CHECK(chosen("mq4", tensor(Role::ffn_up, Use::matrix, {8, 256}, "a.y.b"), keep) == "f32");
    CHECK(chosen("mq4", tensor(Role::ffn_up, Use::matrix, {8, 256}, "a"), keep) == "q8_0");
    CHECK(chosen("mq4", kMatrix, {parse_keep("model.x.weight=f16")}) == "f16");
    CHECK(chosen("mq4", kMatrix, {parse_keep("model.x=f16")}) == "mq4g256v2");
    CHECK(chosen("mq4", kMatrix, {parse_keep("a=b=f16")}) == "mq4g256v2");
}

TEST_CASE("policy: stars take any characters, and many of them take no longer") {
    const auto is_kept = [](const std::string& pattern, const char* name) {
        return chosen("mq4", tensor(Role::ffn_up, Use::matrix, {8, 256}, name),
                      {parse_keep(pattern + "=f16")}) == "f16";
    };
    for (const char* pattern :
         {"a.b.c", "*", "**", "a*", "*c", "a*c", "*b*", "a.*.c", "*.*.*", "a.b.c*"})
        CHECK_MESSAGE(is_kept(pattern, "a.b.c"), pattern);
    for (const char* pattern : {"a", "b*", "*b", "a*b", "*d*", "a.b.c.*", "*.*.*.*", "a*b*a"})
        CHECK_MESSAGE(!is_kept(pattern, "a.b.c"), pattern);
    CHECK(is_kept("*aab", "aaaab"));
    CHECK(!is_kept(std::string(40, '*') + "x", std::string(200, 'a').c_str()));
}

TEST_CASE("policy: formats and patterns that cannot be are refused with what can") {
    CHECK(contains(usage_error([] { format_by_name("q4_k"); }), "mq4g256v2"));
    for (const char* text : {"", "=mq4", "x", "x=", "x=mq7"})
        CHECK_FALSE(usage_error([&] { parse_keep(text); }).empty());
    const auto norm = tensor(Role::attn_norm, Use::vector, {1, 1024});
    const auto odd = tensor(Role::ffn_up, Use::matrix, {100, 100});
    CHECK(contains(usage_error([&] { chosen("mq4", norm, {parse_keep("*=mq4")}); }), "no matrix"));
    CHECK(contains(usage_error([&] { chosen("mq4", odd, {parse_keep("*=mq4")}); }), "256"));
    SourceModel model;
    model.tensors = {kMatrix};
    const Policy policy{&format_by_name("mq4"), {parse_keep("y*=f16")}};
    CHECK(contains(usage_error([&] { plan_output(model, policy, {}); }), "model.x.weight"));
}

TEST_CASE("policy: scales go to matrices whose format takes them, and not to nobody") {
    SourceModel model;
    model.tensors = {kMatrix};
    model.tensors[0].stored_name = "stored";
    const SquareSums sums = {{"stored", std::vector<double>(1024, 1.0)}};
    const auto planned = [&](const char* format) {
        return plan_output(model, {&format_by_name(format), {}}, sums);
    };
    CHECK(planned("mq4")[0].awq.size() == 1024);
    CHECK(contains(usage_error([&] { planned("hfq4"); }), "hfq4g256"));
}

TEST_CASE("awq: scales are fourth roots of the sums over their geometric mean") {
    const std::vector<double> sums = {1, 16, 81, 256};
    const std::vector<float> scales = awq_scales(sums);
    const double mean = std::pow(1.0 * 2 * 3 * 4, 0.25);
    REQUIRE(scales.size() == 4);
    for (size_t k = 0; k < 4; ++k) {
        const double want = double(k + 1) / mean;
        CHECK(scales[k] <= want);  // truncated to f16
        CHECK(scales[k] >= want * (1 - 0x1p-10));
        CHECK(cpu::f16_to_f32(cpu::f32_to_f16_truncated(scales[k])) == scales[k]);
    }
    for (const float s : awq_scales(std::vector<double>{0, 1e300, 1, 1, 1, 1, 1, 1})) {
        CHECK(s >= 0.0099f);  // 0.01, truncated
        CHECK(s <= 100.0f);
    }
}

TEST_CASE("texts: a vocabulary from GGUF keys becomes a tokenizer.json that does the same") {
    for (const std::string& name : kSmallTokenizers) {
        CAPTURE(name);
        const std::string folder = data_path("tokenizers/" + name);
        const ModelFile file = open_gguf(folder + "/vocab.gguf", {});
        const Tokenizer tokenizer =
            Tokenizer::from_json("t.json", tokenizer_json_of(file.gguf, file.path));
        const Json cases = read_json(folder + "/cases.json").at("cases");
        REQUIRE(cases.size() >= 200);
        for (const Json& c : cases) check_case(tokenizer, c);
    }
}

TEST_CASE("texts: strings come out of JSON as they went in") {
    constexpr char kText[] = "quote \" slash \\ tab \t newline \n nul \0 umlaut \xc3\xa4 /";
    const std::string text(kText, sizeof kText - 1);
    const std::string json = json_string(text);
    CHECK(json.find('\n') == std::string::npos);
    JsonReader reader(json, "t");
    CHECK(reader.string() == text);
    CHECK(Json::parse(json).get<std::string>() == text);
}

TEST_CASE("texts: the metadata hold every text, and a template of its own moves into them") {
    ModelFile file;
    file.path = std::string("m");
    file.tokenizer = R"({"a": "\""})";
    file.tokenizer_config = R"({"x": 1, "chat_template": "old", "y": [2]})";
    file.chat_template = "new\n";
    ModelTexts texts = token_texts_of(file);
    texts.architecture = std::string("qwen3");
    texts.config = " {\"model_type\": \"qwen3\"}\n";
    const Json metadata = Json::parse(hfq_metadata(texts));
    CHECK(metadata.at("architecture") == "qwen3");
    CHECK(metadata.at("config").at("model_type") == "qwen3");
    CHECK(metadata.at("tokenizer") == file.tokenizer);
    CHECK(metadata.at("tokenizer_config") ==
          Json::parse(R"({"x":1,"y":[2],"chat_template":"new\n"})"));
    CHECK(metadata.at("generation_config").is_null());

    file.chat_template = std::string("old");
    CHECK(token_texts_of(file).tokenizer_config == file.tokenizer_config);
    file.tokenizer_config.clear();
    CHECK(token_texts_of(file).tokenizer_config == R"({"chat_template":"old"})");

    texts.config = std::string("{");
    CHECK_THROWS_WITH_AS(hfq_metadata(texts), doctest::Contains("config.json"), Error);
}
