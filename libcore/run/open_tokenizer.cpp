#include "libcore/run/open_tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "libcore/file/folder.h"
#include "libcore/file/message.h"

namespace hf {
namespace {

std::string key_name(std::string_view key) {
    return "tokenizer.ggml." + std::string(key);
}

/// Not every model has every key.
std::optional<int32_t> find_id(const GgufKeys& keys, std::string_view key) {
    if (!keys.has(key_name(key))) return std::nullopt;
    return int32_t(keys.uint(key_name(key), 0, kMaxTokenId));
}
std::optional<bool> find_flag(const GgufKeys& keys, std::string_view key) {
    if (!keys.has(key_name(key))) return std::nullopt;
    return keys.boolean(key_name(key), false);
}
std::vector<std::string_view> find_texts(const GgufKeys& keys, std::string_view key) {
    const GgufStrings strings = keys.strings(key_name(key));
    return {strings.begin(), strings.end()};
}

constexpr std::string_view kBare = "tokenizer.json";  // a container of nothing else

/// A file that begins as JSON does.
bool is_json(std::string_view bytes) {
    const size_t at = bytes.find_first_not_of(" \t\r\n");
    return at != bytes.npos && bytes[at] == '{';
}

}  // namespace

VocabData vocab_data(const GgufKeys& keys) {
    return {
        .model = keys.text(key_name("model"), ""),
        .pre = keys.text(key_name("pre"), ""),
        .tokens = find_texts(keys, "tokens"),
        .token_types = keys.ints(key_name("token_type")),
        .scores = keys.floats(key_name("scores")),
        .merges = find_texts(keys, "merges"),
        .bos_token_id = find_id(keys, "bos_token_id"),
        .eos_token_id = find_id(keys, "eos_token_id"),
        .add_bos_token = find_flag(keys, "add_bos_token"),
        .add_eos_token = find_flag(keys, "add_eos_token"),
        .add_space_prefix = find_flag(keys, "add_space_prefix"),
    };
}

std::unique_ptr<Tokenizer> open_tokenizer(const ModelFile& file) {
    const bool is_folder = file.container == "safetensors", is_bare = file.container == kBare;
    const char* part = is_folder ? "/tokenizer.json" : is_bare ? "" : ": tokenizer.json";
    if (!file.tokenizer.empty())
        return std::make_unique<Tokenizer>(Tokenizer::from_json(file.path + part, file.tokenizer));
    if (!file.gguf.has(key_name("model"))) return nullptr;
    const std::string model(file.gguf.text(key_name("model"), ""));
    if (model == "no_vocab" || model == "none") return nullptr;  // GGUF's words for it
    return std::make_unique<Tokenizer>(Tokenizer::from_vocab(file.path, vocab_data(file.gguf)));
}

ModelFile open_model_texts(const std::string& path, const Log& log) {
    constexpr size_t kMostBytes = 256 << 20;
    std::error_code unreachable;  // counts as no folder: opening the file tells
    if (std::filesystem::is_directory(path, unreachable)) return open_folder_texts(path, log);
    const MappedFile mapped(path);
    const std::string_view bytes(reinterpret_cast<const char*>(mapped.bytes().data()),
                                 mapped.bytes().size());
    if (!is_json(bytes.substr(0, 4096))) return open_model_file(path, log);
    if (bytes.size() > kMostBytes)
        fail_file(path, "the file has {} bytes, at most {} are allowed", bytes.size(), kMostBytes);
    ModelFile file;
    file.path = path;
    file.container = kBare;
    file.tokenizer = bytes;
    return file;
}

}  // namespace hf
