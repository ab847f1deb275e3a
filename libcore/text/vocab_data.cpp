#include "libcore/text/vocab_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "libcore/base/error.h"
#include "libcore/text/scored_merges.h"
#include "libcore/text/unicode.h"
#include "libcore/text/vocab_builder.h"

namespace hf {
namespace {

/// One value of tokenizer.ggml.pre.
struct PreRow {
    std::string_view name;
    std::string_view split;  // see split_pattern
    bool nfc, ignore_merges, adds_bos;
};

constexpr PreRow kPre[] = {
    // name              split      nfc    ignore_merges  adds_bos
    {"qwen2", "qwen2", true, false, false},    {"deepseek-r1-qwen", "qwen2", true, false, false},
    {"qwen35", "qwen35", true, false, false},  {"llama-bpe", "llama3", false, true, true},
    {"llama3", "llama3", false, true, true},   {"llama-v3", "llama3", false, true, true},
    {"smollm", "smollm", false, false, false}, {"gpt-2", "gpt2", false, false, false},
};

enum class Role : uint8_t { merged, found, special, unused, byte };

/// What a token of each type is, from type 1 on.
constexpr Role kRoles[] = {
    Role::merged,   // normal
    Role::special,  // unknown
    Role::special,  // control
    Role::found,    // user defined
    Role::unused,  Role::byte,
};

/// The data and the name of where it came from.
struct Source {
    std::string_view label;
    const VocabData& data;

    std::string key(std::string_view name) const {
        return fmt::format("{}: tokenizer.ggml.{}", label, name);
    }
    [[noreturn]] void fail(std::string_view name, std::string_view problem) const {
        throw Error(fmt::format("{}: {}", key(name), problem));
    }
    void check_length(std::string_view name, size_t size) const {
        if (size != data.tokens.size())
            fail(name, fmt::format("has {} elements for {} tokens", size, data.tokens.size()));
    }
};

void check_tokens(const Source& source) {
    const VocabData& data = source.data;
    uint64_t bytes = 0;
    for (const std::string_view token : data.tokens) bytes += token.size();
    if (bytes > UINT32_MAX || data.tokens.size() > size_t(kMaxTokenId) + 1)
        source.fail("tokens", fmt::format("{} tokens of {} bytes; {} of {} are possible",
                                          data.tokens.size(), bytes, kMaxTokenId + 1, UINT32_MAX));
    if (!data.token_types.empty()) source.check_length("token_type", data.token_types.size());
}

Role role_of(const Source& source, size_t id) {
    if (source.data.token_types.empty()) return Role::merged;
    const int32_t type = source.data.token_types[id];
    if (type < 1 || size_t(type) > std::size(kRoles))
        source.fail("token_type", fmt::format("token {} has the type {}; there are 1 to {}", id,
                                              type, std::size(kRoles)));
    return kRoles[type - 1];
}

struct Tokens {
    std::vector<SpelledToken> merged, others;
    TokenIds ids;  // of all
    std::vector<AddedToken> added;

    std::vector<SpelledToken> all() const {
        std::vector<SpelledToken> tokens = merged;
        tokens.insert(tokens.end(), others.begin(), others.end());
        return tokens;
    }
};

/// normal: how the tokens are spelled that merging makes
Tokens sort_tokens(const Source& source, Spelling normal) {
    Tokens t;
    t.ids.reserve(source.data.tokens.size());
    for (size_t i = 0; i < source.data.tokens.size(); ++i) {
        const Role role = role_of(source, i);
        const std::string_view text = source.data.tokens[i];
        if (role == Role::unused || text.empty()) continue;
        const int32_t id = int32_t(i);
        if (const auto [twin, is_new] = t.ids.emplace(text, id); !is_new)
            source.fail("tokens", fmt::format("{} is token {} and token {}", in_quotes(text),
                                              twin->second, id));
        if (role == Role::merged)
            t.merged.push_back({text, id, normal});
        else
            t.others.push_back({text, id, role == Role::byte ? Spelling::byte : Spelling::plain});
        if (role != Role::special && role != Role::found) continue;
        if (replace_invalid_utf8(text) != text)
            source.fail("tokens", fmt::format("token {}, {}, is not UTF-8", id, in_quotes(text)));
        t.added.push_back({id, role == Role::special});
    }
    return t;
}

/// See read_vocab_data: <think> of older files.
void find_untyped_tokens(Tokens& t, const std::vector<Merge>& merges) {
    std::vector<bool> is_made(size_t(t.merged.empty() ? 0 : t.merged.back().id) + 1);
    for (const Merge& m : merges)
        if (size_t(m.merged) < is_made.size()) is_made[size_t(m.merged)] = true;
    for (SpelledToken& token : t.merged) {
        const std::string_view text = token.text;
        if (text.size() < 3 || text.front() != '<' || text.back() != '>') continue;
        if (is_made[size_t(token.id)]) continue;
        token.spelling = Spelling::plain;
        t.added.push_back({token.id, false});
    }
}

/// The token that stands around every text, if the keys want one.
void add_end(const Source& source, std::string_view name, std::optional<int32_t> id,
             std::optional<bool> wanted, bool otherwise, std::vector<int32_t>& out,
             const Vocab& vocab) {
    const std::string key = fmt::format("{}_token_id", name);
    if (id && (*id < 0 || *id >= vocab.size() || vocab.token(*id).empty()))
        source.fail(key, fmt::format("{} is none of the {} tokens", *id, vocab.size()));
    if (wanted.value_or(false) && !id)
        source.fail(key, fmt::format("is missing, but add_{}_token is true", name));
    if (id && wanted.value_or(otherwise)) out.push_back(*id);
}

void add_ends(const Source& source, bool adds_bos, Vocab& vocab) {
    const VocabData& d = source.data;
    add_end(source, "bos", d.bos_token_id, d.add_bos_token, adds_bos, vocab.before, vocab);
    add_end(source, "eos", d.eos_token_id, d.add_eos_token, false, vocab.after, vocab);
}

Vocab read_gpt2(const Source& source) {
    const auto row = std::find_if(std::begin(kPre), std::end(kPre),
                                  [&](const PreRow& r) { return r.name == source.data.pre; });
    if (row == std::end(kPre)) {
        std::vector<std::string_view> known;
        for (const PreRow& r : kPre) known.push_back(r.name);
        source.fail("pre", fmt::format("{} is not known here; this program splits text as {}",
                                       in_quotes(source.data.pre), fmt::join(known, ", ")));
    }
    Vocab vocab;
    vocab.split = &split_pattern(row->split);
    vocab.nfc = row->nfc;

    Tokens tokens = sort_tokens(source, Spelling::byte_level);
    for (const std::string_view merge : source.data.merges) {
        const auto parts = split_merge(merge);
        if (!parts)
            source.fail("merges", fmt::format("{}, number {}, has no space", in_quotes(merge),
                                              vocab.merges.size()));
        add_merge(source.key("merges"), parts->first, parts->second, tokens.ids, vocab.merges);
    }
    if (!row->ignore_merges) find_untyped_tokens(tokens, vocab.merges);
    store_tokens(source.label, tokens.all(), row->ignore_merges, vocab);
    vocab.added = std::move(tokens.added);
    add_ends(source, row->adds_bos, vocab);
    return vocab;
}

Vocab read_llama(const Source& source) {
    const VocabData& data = source.data;
    source.check_length("scores", data.scores.size());
    for (size_t i = 0; i < data.scores.size(); ++i)
        if (!std::isfinite(data.scores[i]))
            source.fail("scores", fmt::format("token {} has {}", i, data.scores[i]));

    Vocab vocab;
    const bool spaces = data.add_space_prefix.value_or(true);
    vocab.space_prefix = spaces ? SpacePrefix::each : SpacePrefix::none;
    vocab.drops_first_space = spaces;

    Tokens tokens = sort_tokens(source, Spelling::spaced);
    vocab.merges = merges_from_scores(source.key("tokens"), tokens.merged, data.scores);
    store_tokens(source.label, tokens.all(), false, vocab);
    vocab.split = &split_of_whole_text(vocab);
    vocab.added = std::move(tokens.added);
    const auto missing = std::find(vocab.byte_ids.begin(), vocab.byte_ids.end(), -1);
    if (missing != vocab.byte_ids.end())
        source.fail("token_type", fmt::format("there is no token for the byte {}",
                                              missing - vocab.byte_ids.begin()));
    add_ends(source, true, vocab);
    return vocab;
}

}  // namespace

Vocab read_vocab_data(std::string_view label, const VocabData& data) {
    const Source source{label, data};
    check_tokens(source);
    if (data.model == "gpt2") return read_gpt2(source);
    if (data.model == "llama") return read_llama(source);
    source.fail("model", fmt::format("{} is not known here; this program reads gpt2 and llama",
                                     in_quotes(data.model)));
}

}  // namespace hf
