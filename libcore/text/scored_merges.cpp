#include "libcore/text/scored_merges.h"

#include <fmt/format.h>

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/text/unicode.h"

namespace hf {
namespace {

constexpr size_t kLongestToken = 256;  // keeps a hostile file's cost in proportion to its size

void add_cuts(const SpelledToken& token, uint32_t rank, const TokenIds& ids,
              std::vector<Merge>& merges) {
    for (size_t cut = code_point_at(token.text, 0).bytes; cut < token.text.size();
         cut += code_point_at(token.text, cut).bytes) {
        const auto left = ids.find(token.text.substr(0, cut));
        if (left == ids.end()) continue;
        const auto right = ids.find(token.text.substr(cut));
        if (right != ids.end()) merges.push_back({left->second, right->second, token.id, rank});
    }
}

}  // namespace

std::vector<Merge> merges_from_scores(std::string_view where, std::span<const SpelledToken> tokens,
                                      std::span<const float> scores) {
    TokenIds ids;
    ids.reserve(tokens.size());
    std::vector<const SpelledToken*> best_first;
    for (const SpelledToken& token : tokens) {
        if (token.text.size() > kLongestToken)
            throw Error(fmt::format("{}[{}]: {} has {} bytes, tokens with scores may have {}",
                                    where, token.id, in_quotes(token.text), token.text.size(),
                                    kLongestToken));
        if (token.text.empty()) continue;
        ids.emplace(token.text, token.id);
        best_first.push_back(&token);
    }
    const auto score = [&](const SpelledToken* token) { return scores[size_t(token->id)]; };
    std::sort(best_first.begin(), best_first.end(), [&](auto* a, auto* b) {
        return score(a) != score(b) ? score(a) > score(b) : a->id < b->id;
    });

    std::vector<Merge> merges;
    uint32_t rank = 0;
    for (size_t i = 0; i < best_first.size(); ++i) {
        if (i > 0 && score(best_first[i]) != score(best_first[i - 1])) ++rank;
        add_cuts(*best_first[i], rank, ids, merges);
    }
    return merges;
}

}  // namespace hf
