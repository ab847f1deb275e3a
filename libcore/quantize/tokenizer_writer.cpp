#include "libcore/quantize/tokenizer_writer.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/quantize/model_texts.h"
#include "libcore/run/open_tokenizer.h"
#include "libcore/text/unicode.h"
#include "libcore/text/vocab_data.h"

namespace hf {
namespace {

/// How vocabularies spell a byte: as itself where it prints, else as U+0100 and up, in order.
const std::array<std::string, 256>& spelled_bytes() {
    static const auto table = [] {
        std::array<std::string, 256> spelled;
        char32_t next = 0x100;
        for (char32_t byte = 0; byte < 256; ++byte) {
            const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
            append_utf8(spelled[byte], prints ? byte : next++);
        }
        return spelled;
    }();
    return table;
}

bool is_sentencepiece(const Vocab& vocab) {
    return !vocab.characters.empty();
}

std::string byte_level(std::string_view token) {
    std::string text;
    for (const char byte : token) text += spelled_bytes()[static_cast<unsigned char>(byte)];
    return text;
}

std::string spaced(std::string_view token) {
    std::string text;
    for (const char c : token) c == ' ' ? text += "\u2581" : text += c;
    return text;
}

/// Every token as it stands in the file, by id.
std::vector<std::string> spelled_tokens(const Vocab& vocab) {
    std::vector<std::string> spelled(size_t(vocab.size()));
    for (const AddedToken& added : vocab.added) spelled[size_t(added.id)] = vocab.token(added.id);
    if (is_sentencepiece(vocab))
        for (size_t byte = 0; byte < 256; ++byte)
            spelled[size_t(vocab.byte_ids[byte])] = fmt::format("<0x{:02X}>", byte);
    const auto spell = is_sentencepiece(vocab) ? spaced : byte_level;
    for (size_t id = 0; id < spelled.size(); ++id)
        if (spelled[id].empty()) spelled[id] = spell(vocab.token(int32_t(id)));
    return spelled;
}

constexpr const char* flag(bool value) {
    return value ? "true" : "false";
}

std::string added_json(const Vocab& vocab) {
    std::string out;
    for (const AddedToken& t : vocab.added)
        out += fmt::format(R"({}{{"id":{},"content":{},"special":{},"normalized":false,)"
                           R"("single_word":false,"lstrip":false,"rstrip":false}})",
                           out.empty() ? "" : ",", t.id, json_string(vocab.token(t.id)),
                           flag(t.special));
    return out;
}

std::string byte_level_step(bool use_regex) {
    return fmt::format(
        R"({{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":{}}})",
        flag(use_regex));
}

/// What stands in front of ByteLevel where the pattern is no regular expression.
struct NamedSplit {
    std::string_view name;  // SplitPattern::name
    std::string_view step;  // empty: ByteLevel alone
};
constexpr NamedSplit kNamedSplits[] = {
    {"gpt2", ""},
    {"smollm", R"({"type":"Digits","individual_digits":true})"},
};

std::string sequence(std::string_view step, bool use_regex) {
    return fmt::format(R"({{"type":"Sequence","pretokenizers":[{},{}]}})", step,
                       byte_level_step(use_regex));
}

std::string pre_tokenizer_json(const SplitPattern& split) {
    if (!split.regex.empty())
        return sequence(fmt::format(R"({{"type":"Split","pattern":{{"Regex":{}}},)"
                                    R"("behavior":"Isolated","invert":false}})",
                                    json_string(split.regex)),
                        false);
    for (const NamedSplit& row : kNamedSplits)
        if (row.name == split.name)
            return row.step.empty() ? byte_level_step(true) : sequence(row.step, true);
    HF_ASSERT(false);
    return {};
}

/// What happens to a text before and after the model.
struct Steps {
    std::string normalizer, pre_tokenizer, decoder;
};

Steps byte_steps(const Vocab& vocab) {
    return {vocab.nfc ? R"({"type":"NFC"})" : "null", pre_tokenizer_json(*vocab.split),
            byte_level_step(true)};
}

Steps sentencepiece_steps(const Vocab& vocab) {
    const bool has_prefix = vocab.space_prefix != SpacePrefix::none;
    return {fmt::format(R"({{"type":"Sequence","normalizers":[{}{}]}})",
                        has_prefix ? R"({"type":"Prepend","prepend":"\u2581"},)" : "",
                        R"({"type":"Replace","pattern":{"String":" "},"content":"\u2581"})"),
            "null",
            fmt::format(R"({{"type":"Sequence","decoders":[{},{{"type":"ByteFallback"}},)"
                        R"({{"type":"Fuse"}}{}]}})",
                        R"({"type":"Replace","pattern":{"String":"\u2581"},"content":" "})",
                        vocab.drops_first_space
                            ? R"(,{"type":"Strip","content":" ","start":1,"stop":0})"
                            : "")};
}

std::string post_processor_json(const Vocab& vocab) {
    if (vocab.before.empty() && vocab.after.empty()) return "null";
    std::string tokens, steps;
    const auto add = [&](int32_t id) {
        const std::string text = json_string(vocab.token(id));
        tokens += fmt::format(R"({}{}:{{"id":{},"ids":[{}],"tokens":[{}]}})",
                              tokens.empty() ? "" : ",", text, text, id, text);
        steps += fmt::format(R"({{"SpecialToken":{{"id":{},"type_id":0}}}},)", text);
    };
    for (const int32_t id : vocab.before) add(id);
    steps += R"({"Sequence":{"id":"A","type_id":0}},)";
    for (const int32_t id : vocab.after) add(id);
    steps.pop_back();  // the comma
    return fmt::format(
        R"({{"type":"TemplateProcessing","single":[{}],"pair":[],"special_tokens":{{{}}}}})", steps,
        tokens);
}

std::string model_json(const Vocab& vocab) {
    const std::vector<std::string> spelled = spelled_tokens(vocab);
    std::string tokens, merges;
    for (size_t id = 0; id < spelled.size(); ++id)
        if (!spelled[id].empty())
            tokens +=
                fmt::format("{}{}:{}", tokens.empty() ? "" : ",", json_string(spelled[id]), id);
    for (const Merge& m : vocab.merges)
        merges += fmt::format("{}[{},{}]", merges.empty() ? "" : ",",
                              json_string(spelled[size_t(m.left)]),
                              json_string(spelled[size_t(m.right)]));
    return fmt::format(R"({{"type":"BPE","byte_fallback":{},"ignore_merges":{},)"
                       R"("vocab":{{{}}},"merges":[{}]}})",
                       flag(is_sentencepiece(vocab)), flag(!vocab.whole_pieces.empty()), tokens,
                       merges);
}

}  // namespace

std::string tokenizer_json_of(const GgufKeys& keys, const std::string& label) {
    if (!keys.has("tokenizer.ggml.model")) return {};
    const Vocab vocab = read_vocab_data(label, vocab_data(keys));
    const Steps steps = is_sentencepiece(vocab) ? sentencepiece_steps(vocab) : byte_steps(vocab);
    return fmt::format(R"({{"version":"1.0","added_tokens":[{}],"normalizer":{},)"
                       R"("pre_tokenizer":{},"post_processor":{},"decoder":{},"model":{}}})",
                       added_json(vocab), steps.normalizer, steps.pre_tokenizer,
                       post_processor_json(vocab), steps.decoder, model_json(vocab));
}

}  // namespace hf
