#include "libcore/text/tokenizer_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/text/unicode.h"

namespace hf {
namespace {

namespace dom = simdjson::dom;

/// A text of the file as it may stand in an error.
std::string shown(std::string_view text) {
    constexpr size_t kLongest = 60;
    return fmt::format("{:?}{}", text.substr(0, kLongest), text.size() > kLongest ? "..." : "");
}

std::optional<int32_t> to_id(dom::element value) {
    int64_t id;
    if (value.get(id) || id < 0 || id > kMaxTokenId) return std::nullopt;
    return int32_t(id);
}

/// A value of the file and where it stands, for errors: "FILE: model.vocab".
struct Node {
    std::string where;
    dom::element value;

    [[noreturn]] void fail(std::string_view problem) const {
        throw Error(fmt::format("{}: {}", where, problem));
    }
    [[noreturn]] void refuse(std::string_view what) const {
        fail(fmt::format(
            "{} is not supported; byte-level BPE with the pattern and the normalizer of "
            "Qwen3.5 is",
            what));
    }

    /// A member that is there and not null.
    std::optional<Node> find(std::string_view key) const {
        dom::element inner;
        if (object()[key].get(inner) || inner.is_null()) return std::nullopt;
        return Node{fmt::format("{}.{}", where, key), inner};
    }
    Node need(std::string_view key) const {
        const std::optional<Node> node = find(key);
        if (!node) fail(fmt::format("the key {} is missing", shown(key)));
        return *node;
    }
    Node at(size_t index, dom::element inner) const {
        return {fmt::format("{}[{}]", where, index), inner};
    }
    std::vector<Node> items() const {
        std::vector<Node> nodes;
        for (const dom::element item : array()) nodes.push_back(at(nodes.size(), item));
        return nodes;
    }

    dom::object object() const { return get<dom::object>("an object"); }
    dom::array array() const { return get<dom::array>("a list"); }
    std::string_view text() const { return get<std::string_view>("a string"); }
    std::string_view type() const { return need("type").text(); }
    int32_t id() const {
        const std::optional<int32_t> id = to_id(value);
        if (!id)
            fail(fmt::format("the id {} is not a whole number of 0 to {}",
                             shown(simdjson::minify(value)), kMaxTokenId));
        return *id;
    }
    bool flag(std::string_view key, bool otherwise) const {
        const std::optional<Node> node = find(key);
        return node ? node->get<bool>("true or false") : otherwise;
    }

  private:
    template <class T>
    T get(std::string_view expected) const {
        T out;
        if (value.get(out)) fail(fmt::format("must be {}", expected));
        return out;
    }
};

bool reads_nfc(const Node& normalizer) {
    if (normalizer.type() == "NFC") return true;
    if (normalizer.type() != "Sequence")
        normalizer.refuse(fmt::format("the normalizer {}", shown(normalizer.type())));
    bool nfc = false;
    for (const Node& part : normalizer.need("normalizers").items()) nfc |= reads_nfc(part);
    return nfc;
}

/// Two steps: Split by a pattern, then ByteLevel, which only spells bytes as characters.
const SplitPattern* read_split(const Node& pre) {
    if (pre.type() != "Sequence")
        pre.refuse(fmt::format("the pre-tokenizer {}", shown(pre.type())));
    const Node list = pre.need("pretokenizers");
    const std::vector<Node> steps = list.items();
    if (steps.size() != 2 || steps[0].type() != "Split" || steps[1].type() != "ByteLevel")
        list.refuse("a sequence of pre-tokenizers other than Split, ByteLevel");

    const Node &split = steps[0], &bytes = steps[1];
    if (split.need("behavior").text() != "Isolated") split.refuse("a behavior other than Isolated");
    if (split.flag("invert", false)) split.refuse("invert");
    if (bytes.flag("add_prefix_space", true)) bytes.refuse("add_prefix_space");
    if (bytes.flag("use_regex", true)) bytes.refuse("use_regex");
    const Node regex = split.need("pattern").need("Regex");
    const SplitPattern* pattern = find_split_pattern(regex.text());
    if (!pattern) regex.refuse(fmt::format("the split pattern {}", shown(regex.text())));
    return pattern;
}

void check_model(const Node& model) {
    if (model.type() != "BPE") model.refuse(fmt::format("the model type {}", shown(model.type())));
    if (model.flag("byte_fallback", false)) model.refuse("byte_fallback");
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"})
        if (const auto affix = model.find(key); affix && !affix->text().empty()) affix->refuse(key);
    if (const auto dropout = model.find("dropout")) dropout->refuse("dropout");
}

/// Bytes are spelled as printable characters: those that print stand for themselves, the others, in
/// order, are U+0100 and up. The reverse: byte of a character, or -1.
constexpr auto kByteOfCharacter = [] {
    std::array<int16_t, 0x144> table{};
    for (int16_t& byte : table) byte = -1;
    size_t next = 0x100;
    for (int16_t byte = 0; byte < 256; ++byte) {
        const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
        table[prints ? size_t(byte) : next++] = byte;
    }
    return table;
}();

/// The bytes that a token of the model spells; none when it has other characters.
std::optional<std::string> spelled_bytes(std::string_view text) {
    std::string bytes;
    for (size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        if (c.value >= kByteOfCharacter.size() || kByteOfCharacter[c.value] < 0)
            return std::nullopt;
        bytes += char(kByteOfCharacter[c.value]);
        at += c.bytes;
    }
    return bytes;
}

/// A token as the file spells it. The texts are views into the parsed file.
struct Token {
    std::string_view text;
    int32_t id;
    bool is_added;  // printed as it is, not by bytes
};
using Ids = std::unordered_map<std::string_view, int32_t>;

/// All tokens of the model, and their ids by text.
std::vector<Token> read_model_tokens(const Node& vocab, Ids& ids) {
    std::vector<Token> tokens;
    ids.reserve(vocab.object().size());
    for (const auto& [text, value] : vocab.object()) {
        const std::optional<int32_t> id = to_id(value);
        if (!id) Node{fmt::format("{}[{}]", vocab.where, shown(text)), value}.id();  // throws
        if (!ids.emplace(text, *id).second)
            vocab.fail(fmt::format("{} is listed twice", shown(text)));
        tokens.push_back({text, *id, false});
    }
    return tokens;
}

/// Adds the added tokens to both; one may be a token of the model, under the same id.
std::vector<AddedToken> read_added(const Node& list, std::vector<Token>& tokens, Ids& ids) {
    std::vector<AddedToken> added;
    for (const Node& node : list.items()) {
        const std::string_view text = node.need("content").text();
        const int32_t id = node.need("id").id();
        if (text.empty()) node.fail("the content is empty");
        for (const std::string_view key : {"lstrip", "rstrip", "single_word", "normalized"})
            if (node.flag(key, false)) node.refuse(fmt::format("{} of {}", key, shown(text)));

        const auto [known, is_new] = ids.emplace(text, id);
        if (known->second != id)
            node.fail(
                fmt::format("{} has the id {} here and {} before", shown(text), id, known->second));
        if (is_new) tokens.push_back({text, id, true});
        added.push_back({id, node.flag("special", false)});
    }
    std::sort(added.begin(), added.end(), [](auto& a, auto& b) { return a.id < b.id; });
    const auto twice = std::adjacent_find(added.begin(), added.end(),
                                          [](auto& a, auto& b) { return a.id == b.id; });
    if (twice != added.end()) list.fail(fmt::format("the id {} is listed twice", twice->id));
    return added;
}

/// Fills bytes, starts and byte_ids, and whole_pieces if wanted.
void store_tokens(const Node& root, std::vector<Token> tokens, bool ignore_merges, Vocab& vocab) {
    if (tokens.empty()) root.fail("the vocabulary has 0 tokens");
    std::sort(tokens.begin(), tokens.end(), [](auto& a, auto& b) { return a.id < b.id; });
    vocab.byte_ids.fill(-1);
    for (const Token& token : tokens) {
        // what there is of starts: one for each id so far, so the id given last ends here
        if (size_t(token.id) < vocab.starts.size())
            root.fail(fmt::format("two tokens have the id {}, one of them {}", token.id,
                                  shown(token.text)));
        const uint32_t start = uint32_t(vocab.bytes.size());  // parsed texts are below 4 GiB
        vocab.starts.resize(size_t(token.id) + 1, start);
        const auto bytes = token.is_added ? std::nullopt : spelled_bytes(token.text);
        vocab.bytes += bytes ? std::string_view(*bytes) : token.text;
        if (bytes && bytes->size() == 1) vocab.byte_ids[uint8_t((*bytes)[0])] = token.id;
        if (bytes && ignore_merges) vocab.whole_pieces.push_back(token.id);
    }
    vocab.starts.push_back(uint32_t(vocab.bytes.size()));
    std::sort(vocab.whole_pieces.begin(), vocab.whole_pieces.end(),
              [&](int32_t a, int32_t b) { return vocab.token(a) < vocab.token(b); });
}

/// ["a", "b"] or, in older files, "a b".
std::optional<std::pair<std::string_view, std::string_view>> merge_parts(dom::element merge) {
    std::string_view left, right;
    if (dom::array pair; !merge.get(pair)) {
        if (pair.size() != 2 || pair.at(0).get(left) || pair.at(1).get(right)) return std::nullopt;
        return std::pair(left, right);
    }
    if (merge.get(left)) return std::nullopt;
    const size_t space = left.find(' ');
    if (space == left.npos) return std::nullopt;
    return std::pair(left.substr(0, space), left.substr(space + 1));
}

std::vector<Merge> read_merges(const Node& list, const Ids& ids) {
    std::vector<Merge> merges;
    std::string joined;
    const auto id_of = [&](std::string_view text, dom::element merge) {
        const auto found = ids.find(text);
        if (found == ids.end())
            list.at(merges.size(), merge)
                .fail(fmt::format("{} is not in the vocabulary of {} tokens", shown(text),
                                  ids.size()));
        return found->second;
    };
    for (const dom::element merge : list.array()) {
        const auto parts = merge_parts(merge);
        if (!parts) list.at(merges.size(), merge).fail(R"(must be ["a", "b"] or "a b")");
        joined.assign(parts->first).append(parts->second);
        merges.push_back(
            {id_of(parts->first, merge), id_of(parts->second, merge), id_of(joined, merge)});
    }
    return merges;
}

void read_template(const Node& processor, Vocab& vocab) {
    const Node known = processor.need("special_tokens");
    std::vector<int32_t>* side = &vocab.before;
    for (const Node& part : processor.need("single").items()) {
        if (part.find("Sequence")) {
            side = &vocab.after;
            continue;
        }
        const std::string_view name = part.need("SpecialToken").need("id").text();
        for (const Node& item : known.need(name).need("ids").items()) {
            if (item.id() >= vocab.size() || vocab.token(item.id()).empty())
                item.fail(fmt::format("the id {} is not one of the {} known ones", item.id(),
                                      vocab.size()));
            side->push_back(item.id());
        }
    }
}

void read_post_processor(const Node& processor, Vocab& vocab) {
    if (processor.type() == "ByteLevel") return;  // moves offsets only
    if (processor.type() == "TemplateProcessing") return read_template(processor, vocab);
    if (processor.type() != "Sequence")
        processor.refuse(fmt::format("the post-processor {}", shown(processor.type())));
    for (const Node& part : processor.need("processors").items()) read_post_processor(part, vocab);
}

Vocab read(const Node& root) {
    const Node model = root.need("model");
    check_model(model);
    if (root.need("decoder").type() != "ByteLevel") root.refuse("a decoder other than ByteLevel");

    Vocab vocab;
    vocab.split = read_split(root.need("pre_tokenizer"));
    if (const auto normalizer = root.find("normalizer")) vocab.nfc = reads_nfc(*normalizer);

    Ids ids;
    std::vector<Token> tokens = read_model_tokens(model.need("vocab"), ids);
    vocab.merges = read_merges(model.need("merges"), ids);
    if (const auto added = root.find("added_tokens")) vocab.added = read_added(*added, tokens, ids);
    store_tokens(root, std::move(tokens), model.flag("ignore_merges", false), vocab);
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
    return read({fmt::format("{}", label), document});
}

}  // namespace hf
