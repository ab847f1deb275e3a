// Byte-pair merging of one piece of text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libcore/text/vocab.h"

namespace hf {

/// Finds the rank (place in the list, 0 is the best) of a pair. Sorted rather than hashed, so that
/// no file can make it slow.
class MergeTable {
  public:
    /// Of a pair that is listed twice the later rank counts, as in the tokenizers library.
    explicit MergeTable(std::span<const Merge> merges);
    std::optional<uint32_t> rank(int32_t left, int32_t right) const;

  private:
    struct Entry {
        int32_t right;
        uint32_t rank;
    };
    std::vector<Entry> entries_;    // by left, then right
    std::vector<uint32_t> starts_;  // entries of left: [starts_[left], starts_[left + 1])
};

/// Encodes the pieces of one text. Has the working memory, so that a Tokenizer can be shared by
/// threads.
class BpeEncoder {
  public:
    /// The vocabulary and the table must outlive it; `out` receives the ids.
    BpeEncoder(const Vocab& vocab, const MergeTable& table, std::vector<int32_t>& out)
        : vocab_(vocab), table_(table), out_(out) {}

    /// Appends the ids of one piece. Starts from single bytes (one without a token is left out) and
    /// merges the pair of the best rank, leftmost first, until no pair has a rank.
    ///
    /// Cost    O(n log n); the ids of a short piece seen before are copied
    /// Source  Sennrich et al. 2016, algorithm 1; over bytes as in GPT-2
    void encode(std::string_view piece);

  private:
    struct Symbol {
        int32_t id;               // -1: merged into the one before
        uint32_t before, behind;  // neighbours that are left
    };
    struct Range {
        size_t start, count;
    };

    bool copy_seen(std::string_view piece);
    bool take_whole(std::string_view piece);
    void merge(std::string_view piece);
    void propose(uint32_t at);
    void join(uint32_t at, int32_t merged);

    const Vocab& vocab_;
    const MergeTable& table_;
    std::vector<int32_t>& out_;
    std::vector<Symbol> symbols_;
    std::vector<uint64_t> heap_;  // rank << 32 | place of the left symbol, smallest on top
    std::unordered_map<std::string, Range> seen_;  // piece: where its ids stand in out
};

}  // namespace hf
