#include "libcore/run/open_tokenizer.h"

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
    const bool is_folder = file.container == "safetensors";
    if (!file.tokenizer.empty())
        return std::make_unique<Tokenizer>(Tokenizer::from_json(
            file.path + (is_folder ? "/tokenizer.json" : ": tokenizer.json"), file.tokenizer));
    if (!file.gguf.has(key_name("model"))) return nullptr;
    const std::string model(file.gguf.text(key_name("model"), ""));
    if (model == "no_vocab" || model == "none") return nullptr;  // GGUF's words for it
    return std::make_unique<Tokenizer>(Tokenizer::from_vocab(file.path, vocab_data(file.gguf)));
}

}  // namespace hf
