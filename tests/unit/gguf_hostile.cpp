// Damaged and hostile GGUF files: each is refused by the check that is meant for it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>
#include <vector>

#include "libcore/file/gguf.h"
#include "tests/support/data.h"
#include "tests/support/gguf_writer.h"
#include "tests/unit/memory_limit.h"
#include "tests/unit/temp_folder.h"

namespace {

using namespace hf;
using namespace hf::test;

std::string refusal(const std::string& file) {
    const ExactBytes exact(file);
    return error_of([&] { read_gguf(exact.first(exact.size), "dir/x.gguf", 0); });
}

/// Some of everything: 6 keys and 3 tensors.
GgufParts some_of_everything() {
    GgufParts parts;
    parts.keys = {gguf_key("general.architecture", "llama"),
                  gguf_key("general.alignment", uint32_t(32)),
                  gguf_key("tokenizer.ggml.add_bos_token", true),
                  gguf_key("tokenizer.ggml.eos_token_id", uint32_t(2)),
                  gguf_list("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"}),
                  gguf_list("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, 3})};
    parts.tensors = {{"a", {2, 3}, 0, std::string(24, 'a')},
                     {"b", {32}, 8, std::string(34, 'b')},
                     {"c", {1}, 0, std::string(4, 'c')}};
    return parts;
}

GgufKeyParts raw_key(const std::string& name, uint32_t type, const std::string& value) {
    return {name, type, value};
}
template <class T>
std::string raw(T value) {
    std::string out;
    put(out, value);
    return out;
}

using Change = void (*)(GgufParts&);

struct Twins {
    std::string words;  // of the refusal
    Change broken, valid;
};

void nothing(GgufParts&) {}
template <size_t i>
GgufTensorParts& tensor(GgufParts& p) {
    return p.tensors[i];
}

// clang-format off
const Twins kTwins[] = {
    {"starts with 'GGUX'", [](GgufParts& p) { p.magic = "GGUX"; }, nothing},
    {"of version 0", [](GgufParts& p) { p.version = 0; }, nothing},
    {"of version 1", [](GgufParts& p) { p.version = 1; }, [](GgufParts& p) { p.version = 2; }},
    {"of version 4", [](GgufParts& p) { p.version = 4; }, nothing},
    {"the version is 0x3000000 + big-endian", [](GgufParts& p) { p.version = 0x03000000; }, nothing},
    {"claims 131073 tensors", [](GgufParts& p) { p.n_tensors = kMostTensors + 1; }, nothing},
    {"claims 18446744073709551615 tensors", [](GgufParts& p) { p.n_tensors = UINT64_MAX; }, nothing},
    {"claims 100000 tensors + bytes are missing", [](GgufParts& p) { p.n_tensors = 100'000; }, nothing},
    {"claims 65537 keys", [](GgufParts& p) { p.n_keys = kMostGgufKeys + 1; }, nothing},
    {"claims 9223372036854775808 keys", [](GgufParts& p) { p.n_keys = uint64_t(1) << 63; }, nothing},
    {"claims 60000 keys + bytes are missing", [](GgufParts& p) { p.n_keys = 60'000; }, nothing},

    {"name of 0 bytes", [](GgufParts& p) { p.keys[2].name = ""; }, [](GgufParts& p) { p.keys[2].name = "x"; }},
    {"name of 65536 bytes", [](GgufParts& p) { p.keys[2].name.assign(65536, 'x'); },
        [](GgufParts& p) { p.keys[2].name.assign(65535, 'x'); }},
    {"'x' has the unknown type 13", [](GgufParts& p) { p.keys.push_back(raw_key("x", 13, raw(1.0))); },
        [](GgufParts& p) { p.keys.push_back(raw_key("x", 12, raw(1.0))); }},
    {"'x' has the unknown type 4294967295", [](GgufParts& p) { p.keys.push_back(raw_key("x", 9, raw(UINT32_MAX) + raw(uint64_t(0)))); },
        [](GgufParts& p) { p.keys.push_back(raw_key("x", 9, raw(uint32_t(0)) + raw(uint64_t(0)))); }},
    {"'x' is a list of lists", [](GgufParts& p) { p.keys.push_back(raw_key("x", 9, raw(uint32_t(9)) + raw(uint64_t(0)))); },
        [](GgufParts& p) { p.keys.push_back(raw_key("x", 9, raw(uint32_t(8)) + raw(uint64_t(0)))); }},
    {"'x' claims 2305843009213693952 elements", [](GgufParts& p) { p.keys.push_back(gguf_list("x", std::vector<uint64_t>{1}, uint64_t(1) << 61)); },
        [](GgufParts& p) { p.keys.push_back(gguf_list("x", std::vector<uint64_t>{1})); }},
    {"value of key 'x' takes 8000 bytes + bytes are missing", [](GgufParts& p) { p.keys.push_back(gguf_list("x", std::vector<uint64_t>{1}, 1000)); },
        [](GgufParts& p) { p.keys.push_back(gguf_list("x", std::vector<uint64_t>(1000))); }},
    {"value of key 'x' takes 8000 bytes + bytes are missing", [](GgufParts& p) { p.keys.push_back(gguf_list("x", std::vector<std::string>{"a"}, 1000)); },
        [](GgufParts& p) { p.keys.push_back(gguf_list("x", std::vector<std::string>(1000))); }},
    {"value of key 'x' takes 1152921504606846976 bytes + bytes are missing", [](GgufParts& p) { p.keys.push_back(raw_key("x", 8, raw(uint64_t(1) << 60))); },
        [](GgufParts& p) { p.keys.push_back(raw_key("x", 8, raw(uint64_t(0)))); }},
    {"'x' has the boolean 2", [](GgufParts& p) { p.keys.push_back(raw_key("x", 7, raw(uint8_t(2)))); },
        [](GgufParts& p) { p.keys.push_back(raw_key("x", 7, raw(uint8_t(1)))); }},
    {"'x' has the boolean 255", [](GgufParts& p) { p.keys.push_back(raw_key("x", 9, raw(uint32_t(7)) + raw(uint64_t(2)) + "\1\xFF")); },
        [](GgufParts& p) { p.keys.push_back(raw_key("x", 9, raw(uint32_t(7)) + raw(uint64_t(2)) + "\1\1")); }},
    {"'general.architecture' is there twice", [](GgufParts& p) { p.keys.push_back(gguf_key("general.architecture", uint8_t(0))); },
        [](GgufParts& p) { p.keys.push_back(gguf_key("general.architectur", uint8_t(0))); }},

    {"'general.alignment' is of type u64; it must be u32", [](GgufParts& p) { p.keys[1] = gguf_key("general.alignment", uint64_t(32)); }, nothing},
    {"'general.alignment' is a list", [](GgufParts& p) { p.keys[1] = gguf_list("general.alignment", std::vector<uint32_t>{32}); }, nothing},
    {"'general.alignment' is 0 (u32)", [](GgufParts& p) { p.keys[1] = gguf_key("general.alignment", uint32_t(0)); }, nothing},
    {"'general.alignment' is 48; it must be a power of two", [](GgufParts& p) { p.keys[1] = gguf_key("general.alignment", uint32_t(48)); },
        [](GgufParts& p) { p.keys[1] = gguf_key("general.alignment", uint32_t(64)); p.alignment = 64; }},
    {"bytes are missing", [](GgufParts& p) { p.keys[1] = gguf_key("general.alignment", uint32_t(1) << 31); p.tensors.resize(1); }, nothing},

    {"'tokenizer.ggml.token_type' has 2 values, but there are 3 tokens", [](GgufParts& p) { p.keys[5] = gguf_list("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1}); }, nothing},
    {"'tokenizer.ggml.scores' has 4 values, but there are 3 tokens", [](GgufParts& p) { p.keys.push_back(gguf_list("tokenizer.ggml.scores", std::vector<float>(4))); },
        [](GgufParts& p) { p.keys.push_back(gguf_list("tokenizer.ggml.scores", std::vector<float>(3))); }},
    {"'tokenizer.ggml.tokens' is a list of u32, not of strings", [](GgufParts& p) { p.keys[4] = gguf_list("tokenizer.ggml.tokens", std::vector<uint32_t>(3)); }, nothing},
    {"'tokenizer.ggml.eos_token_id' is 3 (u32); it must be a whole number from 0 to 2", [](GgufParts& p) { p.keys[3] = gguf_key("tokenizer.ggml.eos_token_id", uint32_t(3)); },
        [](GgufParts& p) { p.keys[3] = gguf_key("tokenizer.ggml.eos_token_id", int64_t(0)); }},
    {"'tokenizer.ggml.eot_token_id' is -1 (i32)", [](GgufParts& p) { p.keys[3] = gguf_key("tokenizer.ggml.eot_token_id", int32_t(-1)); },
        [](GgufParts& p) { p.keys[3] = gguf_key("tokenizer.ggml.eot_token_id", int32_t(1)); }},

    {"has an empty name", [](GgufParts& p) { tensor<0>(p).name = ""; }, [](GgufParts& p) { tensor<0>(p).name = "x"; }},
    {"name of 65 bytes", [](GgufParts& p) { tensor<0>(p).name.assign(65, 'x'); }, [](GgufParts& p) { tensor<0>(p).name.assign(64, 'x'); }},
    {"is called 'a?' + control character 10 as byte 1", [](GgufParts& p) { tensor<0>(p).name = "a\n"; }, [](GgufParts& p) { tensor<0>(p).name = "a "; }},
    {"is called 'a + not UTF-8 from byte 1", [](GgufParts& p) { tensor<0>(p).name = "a\xED\xA0\x80"; }, [](GgufParts& p) { tensor<0>(p).name = "a\xED\x9F\xBF"; }},
    {"tensor 'b' is there twice", [](GgufParts& p) { tensor<0>(p).name = "b"; }, nothing},
    {"'a' + has 0 dimensions", [](GgufParts& p) { tensor<0>(p).dims = {}; }, nothing},
    {"'a' + has 5 dimensions", [](GgufParts& p) { tensor<0>(p).dims = {2, 3, 1, 1, 1}; }, [](GgufParts& p) { tensor<0>(p).dims = {2, 3, 1, 1}; }},
    {"'a' + shape [3, 0]", [](GgufParts& p) { tensor<0>(p).dims = {0, 3}; }, nothing},
    {"'a' + more than 2^64 elements", [](GgufParts& p) { tensor<0>(p).dims = {uint64_t(1) << 32, uint64_t(1) << 32}; }, nothing},
    {"'a' + more than 2^64 elements", [](GgufParts& p) { tensor<0>(p).dims = {UINT64_MAX / 2 + 2, 6}; }, nothing},
    {"'a' + makes 1099511627777 elements", [](GgufParts& p) { tensor<0>(p).dims = {(uint64_t(1) << 40) + 1}; }, nothing},
    {"'a' + 1 rows and 2147483648 columns", [](GgufParts& p) { tensor<0>(p).dims = {uint64_t(1) << 31}; }, nothing},
    {"'a' + 2147483648 rows and 1 columns", [](GgufParts& p) { tensor<0>(p).dims = {1, uint64_t(1) << 31}; }, nothing},
    {"'a' + has type 4 (Q4_2), which was removed", [](GgufParts& p) { tensor<0>(p).type = 4; }, nothing},
    {"'a' + has type 33 ( + requantize", [](GgufParts& p) { tensor<0>(p).type = 33; }, nothing},
    {"'a' + has type 137 (of ik_llama.cpp)", [](GgufParts& p) { tensor<0>(p).type = 137; }, nothing},
    {"'a' + has type 50 that this build does not know", [](GgufParts& p) { tensor<0>(p).type = 50; }, [](GgufParts& p) { tensor<0>(p).type = 26; }},
    {"'b' + rows of 33 elements; type Q8_0 needs a multiple of 32", [](GgufParts& p) { tensor<1>(p).dims = {33}; }, nothing},
    {"'b' + begins at 33 of the data + multiple of the alignment 32", [](GgufParts& p) { tensor<1>(p).offset = 33; }, nothing},
    {"'c' begins at 18446744073709551584 of the data, beyond 2^64", [](GgufParts& p) { tensor<2>(p).offset = UINT64_MAX - 31; }, nothing},
    {"'b' ends at byte + bytes are missing", [](GgufParts& p) { tensor<1>(p).offset = uint64_t(1) << 40; }, nothing},
    {"begins at byte + ends at + they overlap", [](GgufParts& p) { tensor<2>(p).offset = 32; }, nothing},
    {"begins at byte + ends at + they overlap", [](GgufParts& p) { tensor<2>(p).offset = 64; }, [](GgufParts& p) { tensor<2>(p).offset = 96; }},
    {"'c' ends at byte + 1 bytes are missing", [](GgufParts& p) { tensor<2>(p).data.resize(3); }, [](GgufParts& p) { tensor<2>(p).data.resize(5); }},
};
// clang-format on

TEST_CASE("gguf: each kind of damage is refused by its own check, and its twin is read") {
    for (const Twins& twins : kTwins) {
        CAPTURE(twins.words);
        GgufParts broken = some_of_everything(), valid = some_of_everything();
        twins.broken(broken);
        twins.valid(valid);
        const std::string sentence = refusal(broken.bytes());
        CAPTURE(sentence);
        CHECK(sentence.starts_with("dir/x.gguf: "));
        CHECK(has_words(sentence, twins.words));
        CHECK(refusal(valid.bytes()) == "");
    }
}

TEST_CASE("gguf: a file cut off anywhere says how many bytes are missing") {
    for (const std::string& file :
         {some_of_everything().bytes(), read_file(data_path("gguf/tiny_qwen2.q8_0.gguf"))}) {
        const ExactBytes whole(file);
        // of a real file's last tensor the padding may be missing
        const size_t end = whole.size % 32 == 0 ? whole.size - 32 : whole.size;
        for (size_t n = 0; n < end; n += n < 12'000 ? 1 : 10'007) {
            CAPTURE(n);
            const ExactBytes cut(file.substr(0, n));
            CHECK(
                has_words(error_of([&] { read_gguf(cut.first(n), "x", 0); }), "bytes are missing"));
        }
    }
}

// --- generated damage

constexpr uint64_t kHuge[] = {0,          1,          0x7FFFFFFF,         0x80000000,
                              0xFFFFFFFF, 1ull << 32, 1ull << 60,         1ull << 63,
                              UINT64_MAX, ~31ull,     UINT64_MAX / 2 + 2, UINT64_MAX / 8 + 1};

uint64_t any(std::mt19937& random, uint64_t below) {
    return random() % below;
}
uint64_t huge(std::mt19937& random) {
    return kHuge[any(random, std::size(kHuge))];
}

/// Makes one damaged file out of a good one.
using Damage = std::string (*)(GgufParts, std::mt19937&);

const std::pair<const char*, Damage> kDamages[] = {
    {"cut",
     [](GgufParts p, std::mt19937& random) {
         const std::string file = p.bytes();
         return file.substr(0, any(random, file.size()));
     }},
    {"flipped",
     [](GgufParts p, std::mt19937& random) {
         std::string file = p.bytes();
         for (uint64_t n = 1 + any(random, 3); n > 0; --n)
             file[any(random, file.size())] ^= char(1 << any(random, 8));
         return file;
     }},
    {"enlarged counts",
     [](GgufParts p, std::mt19937& random) {
         std::string file = p.bytes();
         const uint64_t value = huge(random);
         std::memcpy(&file[any(random, file.size() - 8)], &value, 8);
         return file;
     }},
    {"overlaps",
     [](GgufParts p, std::mt19937& random) {
         p.tensors[any(random, 3)].offset = 32 * any(random, 4);
         return p.bytes();
     }},
    {"wrong types",
     [](GgufParts p, std::mt19937& random) {
         if (random() % 2)
             p.tensors[any(random, 3)].type = uint32_t(any(random, 64));
         else
             p.keys[any(random, p.keys.size())].type = uint32_t(any(random, 16));
         return p.bytes();
     }},
    {"wrapped sums",
     [](GgufParts p, std::mt19937& random) {
         GgufTensorParts& t = p.tensors[any(random, 3)];
         if (random() % 2) t.offset = huge(random) & ~31ull;
         for (uint64_t& dim : t.dims)
             if (random() % 2) dim = huge(random);
         return p.bytes();
     }},
};

/// Reads a file, and of what it holds every key and the ends of every tensor.
void read_all(std::span<const std::byte> bytes) {
    const GgufContents contents = read_gguf(bytes, "x", 0);
    unsigned sum = 0;
    for (const TensorView& t : contents.tensors)
        sum += unsigned(t.bytes.front()) + unsigned(t.bytes.back());
    const GgufKeys keys("x", contents.keys);
    for (const GgufKey& key : keys.all())
        if (key.type == GgufType::string)
            for (const std::string_view s : GgufStrings(key))
                sum += s.empty() ? 0 : unsigned(s.back());
    CHECK(sum < UINT_MAX);
}

TEST_CASE("gguf: generated damage is refused or harmless, fast, and costs little memory") {
    std::mt19937 random(/*seed=*/23);
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
    CHECK(refused < 240);  // some of it is harmless, as in names and in data
}

TEST_CASE("gguf: flipped bits in the header of a real model are refused or harmless") {
    const std::string good = read_file(data_path("gguf/tiny_qwen35_b.q4_k_m.gguf"));
    std::mt19937 random(/*seed=*/29);
    ExactBytes file(good);
    for (int round = 0; round < 300; ++round) {
        CAPTURE(round);
        std::byte& at = file.bytes[any(random, 12'000)];
        const std::byte before = at;
        at ^= std::byte(1 << any(random, 8));
        error_of([&] { read_all(file.first(file.size)); });
        at = before;
    }
    CHECK(error_of([&] { read_all(file.first(file.size)); }) == "");
}

}  // namespace
