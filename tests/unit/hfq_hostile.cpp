// Damaged and hostile HFQ files: each is refused by the check that is meant for it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>
#include <vector>

#include "libcore/file/hfq.h"
#include "tests/support/hfq_writer.h"
#include "tests/unit/memory_limit.h"
#include "tests/unit/temp_folder.h"

namespace {

using namespace hf;
using namespace hf::test;

ModelFile read(std::span<const std::byte> bytes) {
    return read_hfq(bytes, "dir/x.hfq", {});
}

std::string refusal(const std::string& file) {
    const ExactBytes exact(file);
    return error_of([&] { read(exact.first(exact.size)); });
}

std::string f16(std::vector<uint16_t> bits) {
    std::string out;
    for (const uint16_t b : bits) put(out, b);
    return out;
}

/// Some of everything: a text, a matrix with AWQ scales, one with levels, and others.
HfqParts some_of_everything() {
    HfqParts parts;
    parts.metadata =
        R"({"architecture":"qwen3_5","config":{"model_type":"qwen3_5"},"tokenizer":"{}"})";
    parts.tensors = {
        {"model.a.weight", 13, {2, 256}, std::string(272, 'a')},
        {"model.a.awq_scale.weight", 1, {256}, f16(std::vector<uint16_t>(256, 0x3C00))},
        {"model.b.weight", 7, {2, 130}, std::string(288, 'b')},
        {"model.c.weight", 52, {1, 256}, std::string(136, 'c')},
        {"model.c.lloyd_levels.weight", 2, {16}, std::string(64, '\0')},
        {"model.norm.weight", 2, {3}, std::string(12, 'n')},
    };
    return parts;
}

using Change = void (*)(HfqParts&);

struct Twins {
    std::string words;  // of the refusal
    Change broken, valid;
};

void nothing(HfqParts&) {}
template <size_t i>
HfqTensorParts& tensor(HfqParts& p) {
    return p.tensors[i];
}
constexpr size_t kA = 0, kScale = 1, kB = 2, kC = 3, kLevels = 4, kNorm = 5;

std::string trailer(uint64_t at) {
    std::string out = "HFBNDMTP";
    put(out, at);
    return out;
}
/// A file with a second container and a trailer that says so, `off` bytes beside the truth.
void bundle(HfqParts& p, int64_t off) {
    const size_t end = p.bytes().size();
    p.tail = HfqParts().bytes() + trailer(end + uint64_t(off));
}
/// "config" and so many others.
void many_keys(HfqParts& p, int n) {
    p.metadata = R"({"config":{})";
    for (int i = 0; i < n; ++i) p.metadata += fmt::format(",\"{}\":0", i);
    p.metadata += "}";
}
void gguf_meta(HfqParts& p, const std::string& meta) {
    p.tensors.clear();
    p.metadata = R"({"config":{},"source":"gguf","gguf_meta":)" + meta + "}";
}

// clang-format off
const Twins kTwins[] = {
    {"starts with 'HFQX'", [](HfqParts& p) { p.magic = "HFQX"; }, nothing},
    {"not finished by the program that wrote it", [](HfqParts& p) { p.magic = "HFQ!"; }, nothing},
    {"of version 2 + another program's", [](HfqParts& p) { p.version = 2; }, nothing},
    {"of version 0 + reads version 1", [](HfqParts& p) { p.version = 0; }, nothing},
    {"metadata begin at byte 31; it must be 32 to 4096", [](HfqParts& p) { p.metadata_offset = 31; }, nothing},
    {"metadata begin at byte 4097; it must be 32 to 4096", [](HfqParts& p) { p.metadata_offset = 4097; }, nothing},
    {"metadata begin at byte 32; it must be 32 to 0", [](HfqParts& p) { p.data_offset = 0; }, nothing},
    {"data begin at byte 1099511627776 + bytes are missing", [](HfqParts& p) { p.data_offset = uint64_t(1) << 40; }, nothing},
    {"data begin at byte 18446744073709551615 + bytes are missing", [](HfqParts& p) { p.data_offset = UINT64_MAX; }, nothing},
    {"claims 255 tensors + room for 254", [](HfqParts& p) { p.n_tensors = 255; }, nothing},
    {"claims 4294967295 tensors + room for 254", [](HfqParts& p) { p.n_tensors = UINT32_MAX; }, nothing},

    {"claims 131073 tensors + room for 13", [](HfqParts& p) { p.metadata += std::string(2'200'000, ' '); p.n_tensors = kMostTensors + 1; }, nothing},
    {"the metadata: unusable JSON at byte 0: expected '{'", [](HfqParts& p) { p.metadata = "[]"; }, [](HfqParts& p) { p.metadata = " \n{\"config\":{}}"; }},
    {"the metadata: unusable JSON", [](HfqParts& p) { p.metadata.pop_back(); }, nothing},
    {"the metadata: unusable JSON + not UTF-8", [](HfqParts& p) { p.metadata = "{\"config\":{},\"a\":\"\xFF\"}"; }, [](HfqParts& p) { p.metadata = "{\"config\":{},\"a\":\"\xC3\xBF\"}"; }},
    {"the metadata: unusable JSON + nested deeper", [](HfqParts& p) { p.metadata = R"({"config":{},"a":)" + std::string(70, '[') + std::string(70, ']') + "}"; },
        [](HfqParts& p) { p.metadata = R"({"config":{},"a":)" + std::string(60, '[') + std::string(60, ']') + "}"; }},
    {"has key 'a' twice", [](HfqParts& p) { p.metadata = R"({"config":{},"a":1,"a":1})"; }, [](HfqParts& p) { p.metadata = R"({"config":{},"a":1,"b":{"a":1}})"; }},
    {"has the key 'xxx + of 4097 bytes", [](HfqParts& p) { p.metadata = "{\"config\":{},\"" + std::string(4097, 'x') + "\":0}"; }, [](HfqParts& p) { p.metadata = "{\"config\":{},\"" + std::string(4096, 'x') + "\":0}"; }},
    {"has more than 4096 keys", [](HfqParts& p) { many_keys(p, 4096); }, [](HfqParts& p) { many_keys(p, 4095); }},
    {"has no 'config'", [](HfqParts& p) { p.metadata = "{}"; }, [](HfqParts& p) { p.metadata = R"({"config":{}})"; }},
    {"'config' is not an object", [](HfqParts& p) { p.metadata = R"({"config":"{}"})"; }, nothing},
    {"'tokenizer' is not a string", [](HfqParts& p) { p.metadata = R"({"config":{},"tokenizer":{}})"; }, nothing},
    {"'tokenizer_config' is not an object", [](HfqParts& p) { p.metadata = R"({"config":{},"tokenizer_config":"{}"})"; },
        [](HfqParts& p) { p.metadata = R"({"config":{},"tokenizer_config":{}})"; }},
    {"'tokenizer_config': 'chat_template' is neither", [](HfqParts& p) { p.metadata = R"({"config":{},"tokenizer_config":{"chat_template":1}})"; },
        [](HfqParts& p) { p.metadata = R"({"config":{},"tokenizer_config":{"chat_template":"1"}})"; }},
    {"'generation_config' has 16777217 bytes", [](HfqParts& p) { p.metadata = R"({"config":{},"generation_config":{)" + std::string((16 << 20) - 1, ' ') + "}}"; },
        [](HfqParts& p) { p.metadata = R"({"config":{},"generation_config":{)" + std::string((16 << 20) - 2, ' ') + "}}"; }},
    {"'source' is 'onnx'", [](HfqParts& p) { p.metadata = R"({"config":{},"source":"onnx"})"; }, [](HfqParts& p) { p.metadata = R"({"config":{},"source":""})"; }},

    {"arch_id (at byte 8) is 1 + 'qwen3_5' + is 5 or 6", [](HfqParts& p) { p.arch_id = 1; }, [](HfqParts& p) { p.arch_id = 6; }},
    {"arch_id (at byte 8) is 0 + 'Qwen3_6ForCausalLM'", [](HfqParts& p) { p.arch_id = 0; p.metadata = R"({"config":{"architectures":["Qwen3_6ForCausalLM"]}})"; },
        [](HfqParts& p) { p.arch_id = 0; p.metadata = R"({"config":{"architectures":["Qwen3ForCausalLM"]}})"; }},
    {"arch_id (at byte 8) is 7 + 'qwen3.5'", [](HfqParts& p) { p.arch_id = 7; p.metadata = R"({"config":{},"architecture":"qwen3.5"})"; },
        [](HfqParts& p) { p.arch_id = 7; p.metadata = R"({"config":{},"architecture":"qwen2"})"; }},

    {"the index + has 5 tensors, the header (at byte 12) 6", [](HfqParts& p) { p.n_tensors_in_index = 5; }, nothing},
    {"the index + has 6 tensors, the header (at byte 12) 7", [](HfqParts& p) { p.n_tensors = 7; }, nothing},
    {"takes + but the data begin at 150", [](HfqParts& p) { p.data_offset = 150; }, nothing},
    {"takes 1 bytes + but the data begin at 4096 + 1 bytes are missing", [](HfqParts& p) { p.tensors = {{std::string(4096 - 32 - 13 - 4 - 2, 'x'), 2, {1}, "1234"}}; p.metadata = R"({"config":{}})"; p.data_offset = 4096; },
        [](HfqParts& p) { p.tensors = {{std::string(4096 - 32 - 13 - 4 - 20, 'x'), 2, {1}, "1234"}}; p.metadata = R"({"config":{}})"; }},
    {"has an empty name", [](HfqParts& p) { tensor<kNorm>(p).name = ""; }, [](HfqParts& p) { tensor<kNorm>(p).name = "x"; }},
    {"'a?b' + control character 0 as byte 1", [](HfqParts& p) { tensor<kNorm>(p).name = std::string("a\0b", 3); }, [](HfqParts& p) { tensor<kNorm>(p).name = "a b"; }},
    {"not UTF-8 from byte 0", [](HfqParts& p) { tensor<kNorm>(p).name = "\x80"; }, [](HfqParts& p) { tensor<kNorm>(p).name = "\xC2\x80"; }},
    {"'model.b.weight' + 'model.b.weight' + are the same", [](HfqParts& p) { tensor<kNorm>(p).name = "model.b.weight"; }, [](HfqParts& p) { tensor<kNorm>(p).name = "model.b2.weight"; }},
    {"'b.weight' + 'model.b.weight' + are the same", [](HfqParts& p) { tensor<kNorm>(p).name = "b.weight"; }, [](HfqParts& p) { tensor<kNorm>(p).name = "modelb.weight"; }},
    {"'model.language_model.b.weight' + are the same", [](HfqParts& p) { tensor<kNorm>(p).name = "model.language_model.b.weight"; }, nothing},

    {"has 0 dimensions", [](HfqParts& p) { tensor<kNorm>(p).dims = {}; }, nothing},
    {"has 5 dimensions", [](HfqParts& p) { tensor<kNorm>(p).dims = {3, 1, 1, 1, 1}; }, [](HfqParts& p) { tensor<kNorm>(p).dims = {1, 1, 1, 3}; }},
    {"has shape [3, 0] with a dimension of 0", [](HfqParts& p) { tensor<kNorm>(p).dims = {3, 0}; }, nothing},
    {"more than 2^64 elements", [](HfqParts& p) { tensor<kNorm>(p).dims = {256, UINT32_MAX, UINT32_MAX}; }, nothing},
    {"makes 1099511628000 elements", [](HfqParts& p) { tensor<kNorm>(p).dims = {3, 366503876, 1000}; }, nothing},
    {"1 rows and 2147483648 columns", [](HfqParts& p) { tensor<kNorm>(p).dims = {1u << 31}; }, nothing},
    {"2147483648 rows and 1 columns", [](HfqParts& p) { tensor<kNorm>(p).dims = {1u << 31, 1}; }, nothing},

    {"has 13 bytes, but shape [3] of f32 needs 12", [](HfqParts& p) { tensor<kNorm>(p).bytes = 13; }, nothing},
    {"has 18446744073709551615 bytes, but shape [3] of f32 needs 12", [](HfqParts& p) { tensor<kNorm>(p).bytes = UINT64_MAX; }, nothing},
    {"has 272 bytes, but shape [1, 256] of mq4g256 needs 136", [](HfqParts& p) { tensor<kA>(p).dims = {1, 256}; }, nothing},
    {"rows of 130 elements; format mq4g256 needs a multiple of 256", [](HfqParts& p) { tensor<kB>(p).format = 13; }, nothing},
    {"rows of 255 elements; format mq4g256 needs a multiple of 256", [](HfqParts& p) { tensor<kC>(p).format = 13; tensor<kC>(p).dims = {255}; }, nothing},
    {"has rows of 2181038080 elements; they must be below 2147483648", [](HfqParts& p) { tensor<kNorm>(p).format = 3; tensor<kNorm>(p).dims = {1u << 25, 1, 65}; }, nothing},
    {"has 216 bytes: its rows are not padded + 288 are needed", [](HfqParts& p) { tensor<kB>(p).data.resize(216); }, nothing},
    {"'model.norm.weight', ends at byte + 1 bytes are missing", [](HfqParts& p) { tensor<kNorm>(p).bytes = 12; tensor<kNorm>(p).data.resize(11); }, nothing},
    {"ends beyond 2^64", [](HfqParts& p) { tensor<kNorm>(p).format = 99; tensor<kNorm>(p).bytes = UINT64_MAX; }, [](HfqParts& p) { tensor<kNorm>(p).format = 99; }},

    {"'model.a.awq_scale.weight' + belongs to 'model.a' + not there", [](HfqParts& p) { tensor<kA>(p).name = "model.aa.weight"; }, [](HfqParts& p) { tensor<kA>(p).name = "model.a"; }},
    {"belongs to 'model.a.weight', whose format mq6g256 takes none", [](HfqParts& p) { tensor<kA>(p).format = 15; tensor<kA>(p).data.resize(400); }, [](HfqParts& p) { tensor<kA>(p).format = 47; tensor<kA>(p).data.resize(400); }},
    {"belongs to 'model.a.weight', whose format 46 (mq4_k) takes none", [](HfqParts& p) { tensor<kA>(p).format = 46; }, nothing},
    {"has format 16 (bf16); it must be 1 (F16)", [](HfqParts& p) { tensor<kScale>(p).format = 16; }, nothing},
    {"has shape [255]; it must be [256]", [](HfqParts& p) { tensor<kScale>(p).dims = {255}; tensor<kScale>(p).data.resize(510); }, nothing},
    {"has shape [1, 256]; it must be [256]", [](HfqParts& p) { tensor<kScale>(p).dims = {1, 256}; }, nothing},
    {"has 0 as value 255; all must be finite and above 0", [](HfqParts& p) { tensor<kScale>(p).data[511] = 0; }, [](HfqParts& p) { tensor<kScale>(p).data[511] = 1; }},
    {"has -1 as value 0", [](HfqParts& p) { tensor<kScale>(p).data[1] = '\xBC'; }, nothing},
    {"has inf as value 0", [](HfqParts& p) { tensor<kScale>(p).data[1] = '\x7C'; }, [](HfqParts& p) { tensor<kScale>(p).data[1] = '\x7B'; }},
    {"has nan as value 0", [](HfqParts& p) { tensor<kScale>(p).data[1] = '\x7D'; }, nothing},
    {"'model.c.weight' + has format mq4g256v2l, which needs 'model.c'.lloyd_levels.weight", [](HfqParts& p) { tensor<kLevels>(p).name = "x"; }, nothing},
    {"has format 1 (f16); it must be 2 (F32)", [](HfqParts& p) { tensor<kLevels>(p).format = 1; tensor<kLevels>(p).data.resize(32); }, nothing},
    {"has shape [8]; it must be [16]", [](HfqParts& p) { tensor<kLevels>(p).dims = {8}; tensor<kLevels>(p).data.resize(32); }, nothing},
    {"has inf as value 15; all must be finite", [](HfqParts& p) { tensor<kLevels>(p).data.replace(62, 2, "\x80\x7F"); }, [](HfqParts& p) { tensor<kLevels>(p).data.replace(62, 2, "\x7F\xFF"); }},

    {"the trailer + second container at byte + must be behind the tensors", [](HfqParts& p) { bundle(p, -1); }, [](HfqParts& p) { bundle(p, 0); }},
    {"the trailer + must be behind the tensors", [](HfqParts& p) { bundle(p, 4096); }, nothing},
    {"the trailer + must be behind the tensors", [](HfqParts& p) { bundle(p, int64_t(1) << 62); }, nothing},
    {"the trailer + there is 'FQM + instead of 'HFQM'", [](HfqParts& p) { bundle(p, 1); }, nothing},

    {"'gguf_meta' is missing", [](HfqParts& p) { p.metadata = R"({"config":{},"source":"gguf"})"; p.tensors.clear(); }, [](HfqParts& p) { gguf_meta(p, "{}"); }},
    {"'gguf_meta' is not an object", [](HfqParts& p) { gguf_meta(p, "[]"); }, nothing},
    {"'gguf_meta': has key 'a' twice", [](HfqParts& p) { gguf_meta(p, R"({"a":1,"a":1})"); }, [](HfqParts& p) { gguf_meta(p, R"({"a":1,"b":1})"); }},
    {"'gguf_meta': key 'a' holds an object", [](HfqParts& p) { gguf_meta(p, R"({"a":{}})"); }, [](HfqParts& p) { gguf_meta(p, R"({"a":null})"); }},
    {"'gguf_meta': key 'a' holds a list in a list", [](HfqParts& p) { gguf_meta(p, R"({"a":[[]]})"); }, [](HfqParts& p) { gguf_meta(p, R"({"a":[]})"); }},
    {"'gguf_meta': key 'a' holds null in a list", [](HfqParts& p) { gguf_meta(p, R"({"a":[null]})"); }, nothing},
    {"'gguf_meta': key 'a' is a list of i64 and string", [](HfqParts& p) { gguf_meta(p, R"({"a":[1,"1"]})"); }, [](HfqParts& p) { gguf_meta(p, R"({"a":[1,1.5,1]})"); }},
    {"'gguf_meta': key 'a' holds '1e999'", [](HfqParts& p) { gguf_meta(p, R"({"a":1e999})"); }, [](HfqParts& p) { gguf_meta(p, R"({"a":1e99})"); }},
    {"'gguf_meta' has 16777217 bytes", [](HfqParts& p) { gguf_meta(p, "{" + std::string((16 << 20) - 1, ' ') + "}"); }, [](HfqParts& p) { gguf_meta(p, "{" + std::string((16 << 20) - 2, ' ') + "}"); }},
    {"'gguf_meta': has more than 65536 keys", [](HfqParts& p) { std::string keys; for (int i = 0; i <= 65536; ++i) keys += fmt::format("{}\"{}\":1", i ? "," : "", i); gguf_meta(p, "{" + keys + "}"); },
        [](HfqParts& p) { std::string keys; for (int i = 0; i < 65536; ++i) keys += fmt::format("{}\"{}\":1", i ? "," : "", i); gguf_meta(p, "{" + keys + "}"); }},
    {"tensor 'blk.0.attn_q.weight' is there twice", [](HfqParts& p) { gguf_meta(p, "{}"); p.tensors = {{"model.layers.0.self_attn.q_proj.weight", 2, {1}, "1234"}, {"model.layers.0.attn_q.weight", 2, {1}, "1234"}}; },
        [](HfqParts& p) { gguf_meta(p, "{}"); p.tensors = {{"model.layers.0.self_attn.q_proj.weight", 2, {1}, "1234"}, {"model.layers.1.attn_q.weight", 2, {1}, "1234"}}; }},
};
// clang-format on

TEST_CASE("hfq: each kind of damage is refused by its own check, and its twin is read") {
    for (const Twins& twins : kTwins) {
        CAPTURE(twins.words);
        HfqParts broken = some_of_everything(), valid = some_of_everything();
        twins.broken(broken);
        twins.valid(valid);
        const std::string sentence = refusal(broken.bytes());
        CAPTURE(sentence);
        CHECK(sentence.starts_with("dir/x.hfq: "));
        CHECK(has_words(sentence, twins.words));
        CHECK(refusal(valid.bytes()) == "");
    }
}

TEST_CASE("hfq: a file cut off anywhere says how many bytes are missing") {
    const std::string file = some_of_everything().bytes();
    for (size_t n = 0; n < file.size(); ++n) {
        CAPTURE(n);
        const ExactBytes cut(file.substr(0, n));
        const size_t next = n < 32 ? 32 : n < 4096 ? 4096 : file.size();
        CHECK(has_words(error_of([&] { read(cut.first(n)); }),
                        fmt::format(": {} bytes are missing", next - n)));
    }
}

// --- generated damage

constexpr uint64_t kHuge[] = {0,          1,          0x7FFFFFFF,        0x80000000, 0xFFFFFFFF,
                              1ull << 32, 1ull << 60, 1ull << 63,        UINT64_MAX, ~31ull,
                              1ull << 40, 4097,       UINT64_MAX / 2 + 2};

uint64_t any(std::mt19937& random, uint64_t below) {
    return random() % below;
}
uint64_t huge(std::mt19937& random) {
    return kHuge[any(random, std::size(kHuge))];
}

/// Makes one damaged file out of a good one.
using Damage = std::string (*)(HfqParts, std::mt19937&);

constexpr size_t kHeader = 460;  // header, metadata and index; zeros follow

const std::pair<const char*, Damage> kDamages[] = {
    {"cut",
     [](HfqParts p, std::mt19937& random) {
         const std::string file = p.bytes();
         return file.substr(0, any(random, file.size()));
     }},
    {"flipped",
     [](HfqParts p, std::mt19937& random) {
         std::string file = p.bytes();
         for (uint64_t n = 1 + any(random, 3); n > 0; --n)
             file[any(random, kHeader)] ^= char(1 << any(random, 8));
         return file;
     }},
    {"enlarged counts",
     [](HfqParts p, std::mt19937& random) {
         std::string file = p.bytes();
         const uint64_t value = huge(random), at = any(random, kHeader);
         std::memcpy(&file[at], &value, 1 + any(random, 8));
         return file;
     }},
    {"overlaps",
     [](HfqParts p, std::mt19937& random) {
         p.metadata_offset = any(random, 64);
         if (random() % 2) p.data_offset = any(random, 4200);
         return p.bytes();
     }},
    {"wrong types",
     [](HfqParts p, std::mt19937& random) {
         p.tensors[any(random, p.tensors.size())].format = uint8_t(any(random, 64));
         return p.bytes();
     }},
    {"wrapped sums",
     [](HfqParts p, std::mt19937& random) {
         HfqTensorParts& t = p.tensors[any(random, p.tensors.size())];
         if (random() % 2) t.format = 99;
         if (random() % 2) t.bytes = huge(random);
         for (uint32_t& dim : t.dims)
             if (random() % 2) dim = uint32_t(huge(random));
         return p.bytes();
     }},
};

/// Reads a file, and of what it holds the ends of every tensor.
void read_all(std::span<const std::byte> bytes) {
    unsigned sum = 0;
    for (const TensorView& t : read(bytes).tensors)
        if (!t.bytes.empty()) sum += unsigned(t.bytes.front()) + unsigned(t.bytes.back());
    CHECK(sum < UINT_MAX);
}

TEST_CASE("hfq: generated damage is refused or harmless, fast, and costs little memory") {
    std::mt19937 random(/*seed=*/31);
    REQUIRE(some_of_everything().bytes().substr(kHeader, 4096 - kHeader) ==
            std::string(4096 - kHeader, '\0'));
    size_t refused = 0;
    for (int round = 0; round < 240; ++round) {
        const auto& [what, damage] = kDamages[round % std::size(kDamages)];
        CAPTURE(what);
        CAPTURE(round);
        const ExactBytes file(damage(some_of_everything(), random));
        const double seconds = cpu_seconds(
            [&] { refused += error_of([&] { read_all(file.first(file.size)); }) != ""; });
        CHECK(seconds < 1);
        CHECK(is_enough(64'000'000 + 2 * file.size, [&] { read_all(file.first(file.size)); }));
    }
    CHECK(refused > 120);
    CHECK(refused < 240);  // some of it is harmless, as in names and in numbers that are not read
}

}  // namespace
