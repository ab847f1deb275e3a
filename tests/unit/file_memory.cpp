// How much memory hostile headers make the reader ask for.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "libcore/file/gguf.h"
#include "libcore/file/hfq.h"
#include "libcore/file/mapped_file.h"
#include "libcore/file/safetensors.h"
#include "tests/support/hfq_writer.h"
#include "tests/unit/memory_limit.h"
#include "tests/unit/temp_folder.h"

namespace {

using namespace hf;
using namespace hf::test;

constexpr size_t kMB = 1'000'000;

/// `start`, and `text` again and again until there are so many bytes.
std::string repeated(std::string start, const std::string& text, size_t bytes) {
    std::string out = std::move(start);
    out.reserve(bytes + text.size());
    while (out.size() < bytes) out += text;
    return out;
}

std::string many_entries(size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i)
        out += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                           i ? "," : "", i);
    return out;
}

TEST_CASE("safetensors: a hostile header costs at most 64 MB and twice its own size") {
    const std::pair<std::string, std::string> kInside[] = {
        {"brackets", repeated("", "[", 40 * kMB)},
        {"spaces", repeated("", " ", 40 * kMB)},
        {"one long name", repeated("\"", "x", 40 * kMB)},
        {"one long name of escapes", repeated("\"", "\\n", 40 * kMB)},
        {"a list of numbers", repeated(R"("a":{"x":[)", "1,", 40 * kMB)},
        {"metadata", repeated(R"("__metadata__":{)", R"("a":"b",)", 40 * kMB)},
        {"too many dimensions", repeated(R"("a":{"shape":[)", "1,", 40 * kMB)},
        {"as many tensors as allowed", many_entries(kMostTensors)},
        {"one tensor more than allowed", many_entries(kMostTensors + 1)},
    };
    const TempFolder folder;
    for (const auto& [what, inside] : kInside) {
        CAPTURE(what);
        folder.write("x", safetensors("{" + inside + "}", 0));
        CHECK(is_enough(64 * kMB + 2 * inside.size(), [&] {
            const MappedFile file(folder / "x");
            read_safetensors(file.bytes(), "x", 0);
        }));
    }
}

TEST_CASE("gguf: a hostile header costs at most 64 MB and twice its own size") {
    const auto with_key = [](const GgufKeyParts& key) {
        GgufParts parts;
        parts.keys = {key};
        return parts;
    };
    GgufParts keys, tensors;
    for (size_t i = 0; i < kMostGgufKeys; ++i)
        keys.keys.push_back(gguf_key(fmt::to_string(i), uint8_t(0)));
    for (size_t i = 0; i < kMostTensors; ++i)
        tensors.tensors.push_back({fmt::to_string(i), {1}, 24, "x"});
    tensors.alignment = 1;
    tensors.keys = {gguf_key("general.alignment", uint32_t(1))};
    const std::pair<std::string, GgufParts> kFiles[] = {
        {"one long string",
         with_key(gguf_key("tokenizer.chat_template", std::string(40 * kMB, 'x')))},
        {"one long name", with_key(gguf_key(std::string(40 * kMB, 'x'), uint8_t(0)))},
        {"empty strings",
         with_key(gguf_list("tokenizer.ggml.tokens", std::vector<std::string>(5 * kMB)))},
        {"bytes", with_key(gguf_list("tokenizer.ggml.scores", std::vector<uint8_t>(40 * kMB)))},
        {"as many keys as allowed", std::move(keys)},
        {"as many tensors as allowed", std::move(tensors)},
    };
    const TempFolder folder;
    for (const auto& [what, parts] : kFiles) {
        CAPTURE(what);
        const std::string bytes = parts.bytes();
        folder.write("x.gguf", bytes);
        CHECK(is_enough(64 * kMB + 2 * bytes.size(), [&] { open_gguf(folder / "x.gguf", {}); }));
    }
}

TEST_CASE("hfq: a hostile header costs at most 64 MB and twice its own size") {
    const auto with = [](std::string metadata) {
        HfqParts parts;
        parts.metadata = std::move(metadata);
        return parts;
    };
    const std::string gguf = R"({"config":{},"source":"gguf","gguf_meta":{)";
    HfqParts tensors;
    for (size_t i = 0; i < kMostTensors; ++i)
        tensors.tensors.push_back({fmt::to_string(i), 42, {1}, ""});
    const std::pair<std::string, HfqParts> kFiles[] = {
        {"brackets", with(repeated("{", "[", 40 * kMB))},
        {"one long unknown string", with(repeated(R"({"config":{},"x":")", "y", 40 * kMB) + "\"}")},
        {"a long tokenizer",
         with(repeated(R"({"config":{},"tokenizer":")", "\\n", 40 * kMB) + "\"}")},
        {"a long template",
         with(repeated(R"({"config":{},"tokenizer_config":{"chat_template":")", "y", 15 * kMB) +
              "\"}}")},
        {"many keys", with(repeated(R"({"config":{})", R"(,"x":0)", 40 * kMB) + "}")},
        {"small numbers", with(repeated(gguf + R"("a":[0)", ",1", 16 * kMB) + "]}}")},
        {"empty strings", with(repeated(gguf + R"("a":[0)", R"(,"")", 16 * kMB) + "]}}")},
        {"as many tensors as allowed", std::move(tensors)},
    };
    const TempFolder folder;
    for (const auto& [what, parts] : kFiles) {
        CAPTURE(what);
        const std::string bytes = parts.bytes();
        folder.write("x", bytes);
        CHECK(is_enough(64 * kMB + 2 * bytes.size(), [&] { open_hfq(folder / "x", {}); }));
    }
}

}  // namespace
