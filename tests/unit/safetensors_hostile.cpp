// Damaged and hostile safetensors headers: each is refused by the check that is meant for it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <random>
#include <span>

#include "libcore/file/safetensors.h"
#include "tests/support/data.h"
#include "tests/unit/temp_folder.h"

namespace {

using namespace hf;
using namespace hf::test;

std::string refusal(const std::string& file) {
    const ExactBytes exact(file);
    return error_of([&] { read_safetensors(exact.first(exact.size), "dir/x.safetensors", 0); });
}

struct Twins {
    std::string words;  // of the refusal
    std::string broken;
    size_t broken_bytes;
    std::string valid;
    size_t valid_bytes;
};

// clang-format off
const Twins kTwins[] = {
    {"not a JSON object",
     R"([])", 0,
     R"({})", 0},
    {"unusable JSON at byte 1",
     R"({)", 0,
     R"({} )", 0},
    {"unusable JSON at byte 3 + behind the end",
     R"({} x)", 0,
     R"({}  )", 0},
    {"__metadata__ + not a JSON object",
     R"({"__metadata__":"pt"})", 0,
     R"({"__metadata__":{}})", 0},
    {"__metadata__ + 'format' + not a string",
     R"({"__metadata__":{"format":1}})", 0,
     R"({"__metadata__":{"format":"1"}})", 0},
    {"'a' + entry is not a JSON object",
     R"({"a":[]})", 0,
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4},
    {"'a' + no 'dtype'",
     R"({"a":{"shape":[4],"data_offsets":[0,4]}})", 4,
     R"({"a":{"shape":[4],"data_offsets":[0,4],"dtype":"U8"}})", 4},
    {"'a' + no 'shape'",
     R"({"a":{"dtype":"U8","data_offsets":[0,4]}})", 4,
     R"({"a":{"dtype":"U8","data_offsets":[0,4],"shape":[2,2]}})", 4},
    {"'a' + no 'data_offsets'",
     R"({"a":{"dtype":"U8","shape":[4]}})", 4,
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"unknown":{"keys":["are",-1.5e3,null]}}})", 4},
    {"'dtype' is there twice",
     R"({"a":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4,
     R"({"a":{"dtype":"U8","d_type":"U8","shape":[4],"data_offsets":[0,4]}})", 4},
    {"'dtype' is not a string",
     R"({"a":{"dtype":8,"shape":[4],"data_offsets":[0,4]}})", 4,
     R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}})", 4},
    {"'F7' is unknown",
     R"({"a":{"dtype":"F7","shape":[4],"data_offsets":[0,4]}})", 4,
     R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", 4},
    {"'shape' is not an array",
     R"({"a":{"dtype":"U8","shape":4,"data_offsets":[0,4]}})", 4,
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4},
    {"'shape' holds something that is not a number",
     R"({"a":{"dtype":"U8","shape":["4"],"data_offsets":[0,4]}})", 4,
     R"({"a":{"dtype":"U8","shape":[ 4 ],"data_offsets":[0,4]}})", 4},
    {"'shape' holds '-4'",
     R"({"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})", 4,
     R"({"a":{"dtype":"U8","shape":[1,4],"data_offsets":[0,4]}})", 4},
    {"'shape' holds '4.0'",
     R"({"a":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]}})", 4,
     R"({"a":{"dtype":"U8","shape":[4,1],"data_offsets":[0,4]}})", 4},
    {"'shape' holds '9223372036854775808'",
     R"({"a":{"dtype":"U8","shape":[9223372036854775808,0],"data_offsets":[0,0]}})", 0,
     R"({"a":{"dtype":"U8","shape":[2147483647,0],"data_offsets":[0,0]}})", 0},
    {"'shape' has more than 4",
     R"({"a":{"dtype":"U8","shape":[1,1,1,1,4],"data_offsets":[0,4]}})", 4,
     R"({"a":{"dtype":"U8","shape":[1,1,1,4],"data_offsets":[0,4]}})", 4},
    {"[4294967296, 4294967296, 1] + overflows",
     R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,1],"data_offsets":[0,0]}})", 0,
     R"({"a":{"dtype":"U8","shape":[1,1,1],"data_offsets":[0,1]}})", 1},
    {"[4294967296, 4294967296] + overflows",
     R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
     R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1},
    {"2147483648 rows and 0 columns",
     R"({"a":{"dtype":"U8","shape":[2,1073741824,0],"data_offsets":[0,0]}})", 0,
     R"({"a":{"dtype":"U8","shape":[2,1073741823,0],"data_offsets":[0,0]}})", 0},
    {"0 rows and 2147483648 columns",
     R"({"a":{"dtype":"U8","shape":[0,2147483648],"data_offsets":[0,0]}})", 0,
     R"({"a":{"dtype":"U8","shape":[0,2147483647],"data_offsets":[0,0]}})", 0},
    {"'data_offsets' is not an array",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":{"begin":0,"end":4}}})", 4,
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4},
    {"'data_offsets' has 1 numbers",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4]}})", 4,
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4},
    {"'data_offsets' has more than 2",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,4]}})", 4,
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4},
    {"'data_offsets' holds '-1'",
     R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[-1,4]}})", 4,
     R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", 5},
    {"begins at 4 and ends before, at 0",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 4,
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4},
    {"span 4 bytes + [4] of F16 needs 8",
     R"({"a":{"dtype":"F16","shape":[4],"data_offsets":[0,4]}})", 4,
     R"({"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})", 8},
    {"needs more than 2^64",
     R"({"a":{"dtype":"F64","shape":[2147483647,2147483647],"data_offsets":[0,8]}})", 8,
     R"({"a":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]}})", 8},
    {"'a' is there twice",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})", 8,
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})", 8},
    {"'a' is there twice",
     R"({"\u0061":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4,
     R"({"\u0062":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 8},
    {"'b' begins at 3 + 'a' before it ends at 4 + overlap",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})", 7,
     R"({"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 8},
    {"'e' begins at 2 + overlap",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"e":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})", 4,
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"e":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}})", 4},
    {"8 bytes in front of tensor 'b' + belong to no tensor",
     R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[4],"data_offsets":[16,20]}})", 20,
     R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]},"b":{"dtype":"U8","shape":[4],"data_offsets":[16,20]}})", 20},
    {"2 bytes in front of tensor 'b' + belong to no tensor",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})", 10,
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[8,12]}})", 12},
    {"8 bytes in front of tensor 'a'",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[8,12]}})", 12,
     R"({"a":{"dtype":"U8","shape":[12],"data_offsets":[0,12]}})", 12},
    {"'b' ends at 8 + has 7 bytes of it + 1 bytes are missing",
     R"({"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 7,
     R"({"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 8},
    {"the last 1 belong to no tensor",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 5,
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4},
    {"the last 1 belong to no tensor",
     R"({})", 1,
     R"({})", 0},
};
// clang-format on

const std::string kTwoTensors =
    R"({"__metadata__":{"format":"pt"},"w":{"dtype":"BF16","shape":[3,2],"data_offsets":[0,12]},)"
    R"("v":{"dtype":"F32","shape":[5],"data_offsets":[16,36]}}  )";

std::string with_length(uint64_t length, std::string file) {
    std::memcpy(file.data(), &length, 8);
    return file;
}

TEST_CASE("safetensors: each kind of damage is refused by its own check, and its twin is read") {
    for (const Twins& twins : kTwins) {
        CAPTURE(twins.words);
        CAPTURE(twins.broken);
        const std::string sentence = refusal(safetensors(twins.broken, twins.broken_bytes));
        CAPTURE(sentence);
        CHECK(sentence.starts_with("dir/x.safetensors: "));
        CHECK(has_words(sentence, twins.words));
        CHECK(refusal(safetensors(twins.valid, twins.valid_bytes)) == "");
    }
}

TEST_CASE("safetensors: a header length that cannot be is refused before the header is read") {
    const std::string valid = safetensors(kTwoTensors, 36);
    REQUIRE(refusal(valid) == "");
    CHECK(has_words(refusal(with_length(0, valid)), "length of the header is 0"));
    CHECK(has_words(refusal(with_length(100'000'001, valid)),
                    "claims 100000001 + at most 100000000"));
    CHECK(has_words(refusal(with_length(UINT64_MAX, valid)), "claims 18446744073709551615"));
    const size_t left = valid.size() - 8;
    CHECK(refusal(with_length(left, valid)).find("missing") == std::string::npos);
    CHECK(has_words(refusal(with_length(left + 1, valid)), "1 bytes are missing"));
    CHECK(has_words(refusal("version https://git-lfs.github.com/spec/v1\n"), "git lfs pull"));
}

TEST_CASE("safetensors: a file cut off anywhere says how many bytes are missing") {
    const ExactBytes whole(safetensors(kTwoTensors, 36));
    const size_t header_end = 8 + kTwoTensors.size();
    for (size_t n = 0; n < whole.size; ++n) {
        CAPTURE(n);
        const ExactBytes cut(std::string(reinterpret_cast<char*>(whole.bytes.get()), n));
        const size_t next = n < 8 ? 8 : n < header_end ? header_end : whole.size;
        CHECK(has_words(error_of([&] { read_safetensors(cut.first(n), "x", 0); }),
                        fmt::format(": {} bytes are missing", next - n)));
    }
}

TEST_CASE("safetensors: a real model cut off anywhere is refused") {
    const ExactBytes whole(read_file(data_path("models/tiny_qwen35_b/model.safetensors")));
    for (size_t n = 0; n < whole.size; n += n < 4000 ? 1 : 10'007) {
        CAPTURE(n);
        CHECK(has_words(error_of([&] { read_safetensors(whole.first(n), "x", 0); }),
                        "bytes are missing"));
    }
}

TEST_CASE("safetensors: random damage to a header is refused or harmless") {
    const ExactBytes file(read_file(data_path("models/tiny_qwen35_b/model.safetensors")));
    const std::span<std::byte> bytes(file.bytes.get(), file.size);
    uint64_t header_bytes;
    std::memcpy(&header_bytes, bytes.data(), 8);
    std::mt19937 random(/*seed=*/17);
    size_t refused = 0;
    for (int round = 0; round < 300; ++round) {
        CAPTURE(round);
        std::vector<std::pair<std::byte*, std::byte>> before;
        for (size_t i = 0; i <= random() % 3; ++i) {
            std::byte& at = bytes[random() % (8 + header_bytes)];
            before.emplace_back(&at, at);
            at = std::byte(random());
        }
        const std::string sentence = error_of([&] {
            unsigned sum = 0;
            for (const TensorView& t : read_safetensors(bytes, "x", 0))
                if (!t.bytes.empty()) sum += unsigned(t.bytes.front()) + unsigned(t.bytes.back());
            CHECK(sum > 0);
        });
        refused += !sentence.empty();
        while (!before.empty()) {  // backwards, for a byte that was hit twice
            *before.back().first = before.back().second;
            before.pop_back();
        }
    }
    CHECK(refused > 100);  // names may change freely, little else
    CHECK(error_of([&] { read_safetensors(bytes, "x", 0); }) == "");
}

TEST_CASE("safetensors: every dtype of the format is known, with or without a codec") {
    const std::pair<std::string, size_t> kBytes[] = {
        {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
        {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
        {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
    for (const auto& [dtype, size] : kBytes) {
        CAPTURE(dtype);
        const ExactBytes file(safetensors(
            fmt::format(R"({{"a":{{"dtype":"{}","shape":[2,3],"data_offsets":[0,{}]}}}})", dtype,
                        6 * size),
            6 * size));
        const std::vector<TensorView> tensors = read_safetensors(file.first(file.size), "x", 0);
        REQUIRE(tensors.size() == 1);
        CHECK(tensors[0].dtype == dtype);
        CHECK(tensors[0].codec == codec_by_safetensors(dtype));
        if (const Codec* codec = tensors[0].codec) CHECK(codec->row_bytes(3) == 3 * size);
    }
    CHECK(codec_by_safetensors("BF16"));
    CHECK(!codec_by_safetensors("I64"));
}

TEST_CASE("safetensors: rows are the product of all dimensions but the last") {
    const std::tuple<std::string, int, Shape> kShapes[] = {
        {"[]", 0, {1, 1}},    {"[6]", 1, {1, 6}},     {"[2,3]", 2, {2, 3}},
        {"[0,3]", 2, {0, 3}}, {"[2,1,3]", 3, {2, 3}}, {"[2,5,1,3]", 4, {10, 3}},
    };
    for (const auto& [text, n_dims, shape] : kShapes) {
        CAPTURE(text);
        const size_t size = shape.rows * shape.cols;
        const ExactBytes file(safetensors(
            fmt::format(R"({{"a":{{"dtype":"U8","shape":{},"data_offsets":[0,{}]}}}})", text, size),
            size));
        const std::vector<TensorView> tensors = read_safetensors(file.first(file.size), "x", 7);
        REQUIRE(tensors.size() == 1);
        CHECK(tensors[0].n_dims == n_dims);
        CHECK(tensors[0].shape == shape);
        CHECK(tensors[0].bytes.size() == size);
        CHECK(tensors[0].offset == file.size - size);
        CHECK(tensors[0].file == 7);
    }
}

/// A valid header of n tensors of one byte, and its data.
std::string many_tensors(size_t n) {
    std::string header = "{";
    for (size_t i = 0; i < n; ++i)
        header += fmt::format(R"({}"t{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                              i ? "," : "", i, i, i + 1);
    return safetensors(header + "}", n);
}

TEST_CASE("safetensors: there may be as many tensors as the limit says, and no more") {
    using Clock = std::chrono::steady_clock;
    const std::string most = many_tensors(kMostTensors);
    const Clock::time_point start = Clock::now();
    CHECK(refusal(most) == "");
    CHECK(Clock::now() - start < std::chrono::seconds(10));  // a square of 131072 takes longer
    CHECK(has_words(refusal(many_tensors(kMostTensors + 1)), "more than 131072 tensors"));
}

TEST_CASE("safetensors: hostile names come out of the messages short and harmless") {
    const std::string name = "\\u001b[2J" + std::string(5000, 'x');
    const std::string sentence = refusal(safetensors("{\"" + name + "\":[]}", 0));
    CHECK(has_words(sentence, "'?[2Jxxx + xxx...'"));
    CHECK(sentence.size() < 300);
}

}  // namespace
