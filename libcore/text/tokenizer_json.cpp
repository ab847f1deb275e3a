#include "libcore/text/tokenizer_json.h"

#include <algorithm>
#include <utility>

#include "libcore/text/tokenizer_steps.h"

namespace hf {
namespace {

namespace dom = simdjson::dom;

void check_model(const JsonNode& model, Spelling spelling) {
    if (model.type() != "BPE")
        model.refuse(fmt::format("the model type {}", in_quotes(model.type())));
    if (const bool fallback = model.flag("byte_fallback", false);
        fallback != (spelling == Spelling::spaced))
        model.refuse(fmt::format("byte_fallback = {} with this decoder", fallback));
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"})
        if (const auto affix = model.find(key); affix && !affix->text().empty()) affix->refuse(key);
    if (const auto dropout = model.find("dropout")) dropout->refuse("dropout");
}

/// All tokens of the model, and their ids by text.
std::vector<SpelledToken> read_model_tokens(const JsonNode& vocab, Spelling spelling,
                                            TokenIds& ids) {
    std::vector<SpelledToken> tokens;
    ids.reserve(vocab.object().size());
    for (const auto& [text, value] : vocab.object()) {
        const std::optional<int32_t> id = to_id(value);
        if (!id)
            JsonNode{fmt::format("{}[{}]", vocab.where, in_quotes(text)), value}.id();  // throws
        if (!ids.emplace(text, *id).second)
            vocab.fail(fmt::format("{} is listed twice", in_quotes(text)));
        const bool is_byte = spelling == Spelling::spaced && is_written_byte(text);
        tokens.push_back({text, *id, is_byte ? Spelling::byte : spelling});
    }
    return tokens;
}

AddedToken read_added_token(const JsonNode& node, Spelling spelling, bool nfc) {
    const std::string_view text = node.need("content").text();
    if (text.empty()) node.fail("the content is empty");
    if (node.flag("single_word", false))
        node.refuse(fmt::format("single_word of {}", in_quotes(text)));
    const bool normalized = node.flag("normalized", false);
    if (normalized && spelling == Spelling::spaced)
        node.refuse(
            fmt::format("normalized of {}, in SentencePiece's vocabulary,", in_quotes(text)));
    return {.id = node.need("id").id(),
            .special = node.flag("special", false),
            .normalized = normalized && nfc,  // without a normalizer it is all the same
            .takes_space_before = node.flag("lstrip", false),
            .takes_space_behind = node.flag("rstrip", false)};
}

/// Adds the added tokens to both; one may be a token of the model, under the same id.
std::vector<AddedToken> read_added(const JsonNode& list, Spelling spelling, bool nfc,
                                   std::vector<SpelledToken>& tokens, TokenIds& ids) {
    std::vector<AddedToken> added;
    for (const JsonNode& node : list.items()) {
        added.push_back(read_added_token(node, spelling, nfc));
        const std::string_view text = node.need("content").text();
        const int32_t id = added.back().id;
        const auto [known, is_new] = ids.emplace(text, id);
        if (known->second != id)
            node.fail(fmt::format("{} has the id {} here and {} before", in_quotes(text), id,
                                  known->second));
        if (is_new) tokens.push_back({text, id, Spelling::plain});
    }
    std::sort(added.begin(), added.end(), [](auto& a, auto& b) { return a.id < b.id; });
    const auto twice = std::adjacent_find(added.begin(), added.end(),
                                          [](auto& a, auto& b) { return a.id == b.id; });
    if (twice != added.end()) list.fail(fmt::format("the id {} is listed twice", twice->id));
    return added;
}

/// ["a", "b"] or, in older files, "a b".
std::optional<std::pair<std::string_view, std::string_view>> merge_parts(dom::element merge) {
    std::string_view left, right;
    if (!merge.get(left)) return split_merge(left);
    dom::array pair;
    if (merge.get(pair) || pair.size() != 2 || pair.at(0).get(left) || pair.at(1).get(right))
        return std::nullopt;
    return std::pair(left, right);
}

std::vector<Merge> read_merges(const JsonNode& list, const TokenIds& ids) {
    std::vector<Merge> merges;
    for (const dom::element merge : list.array()) {
        const auto parts = merge_parts(merge);
        if (!parts) list.at(merges.size(), merge).fail(R"(must be ["a", "b"] or "a b")");
        add_merge(list.where, parts->first, parts->second, ids, merges);
    }
    return merges;
}

Vocab read(const JsonNode& root) {
    Vocab vocab;
    const Spelling spelling = read_steps(root, vocab);
    const JsonNode model = root.need("model");
    check_model(model, spelling);

    TokenIds ids;
    std::vector<SpelledToken> tokens = read_model_tokens(model.need("vocab"), spelling, ids);
    vocab.merges = read_merges(model.need("merges"), ids);
    if (const auto added = root.find("added_tokens"))
        vocab.added = read_added(*added, spelling, vocab.nfc, tokens, ids);
    store_tokens(root.where, std::move(tokens), model.flag("ignore_merges", false), vocab);
    if (!vocab.split) vocab.split = &split_of_whole_text(vocab);
    const auto missing = std::find(vocab.byte_ids.begin(), vocab.byte_ids.end(), -1);
    if (model.find("unk_token") && missing != vocab.byte_ids.end())
        model.refuse(fmt::format("unk_token with no token for the byte {}",
                                 missing - vocab.byte_ids.begin()));
    if (const auto processor = root.find("post_processor")) read_post_processor(*processor, vocab);
    return vocab;
}

}  // namespace

Vocab read_tokenizer_json(std::string_view label, std::string_view json) {
    dom::parser parser;
    dom::element document;
    if (const auto error = parser.parse(json.data(), json.size()).get(document))
        throw Error(fmt::format("{}: is not JSON ({}), of {} bytes; download it again", label,
                                simdjson::error_message(error), json.size()));
    return read({std::string(label), document});
}

}  // namespace hf
