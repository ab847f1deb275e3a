// Byte-pair merging of one piece of text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libcore/text/vocab.h"

namespace hf {

/// Finds the merge of a pair. Sorted rather than hashed, so that no file can make it slow.
class MergeTable {
  public:
    static constexpr uint32_t kNone = UINT32_MAX;

    /// Of a pair that is listed twice the later merge counts, as in the tokenizers library.
    explicit MergeTable(std::span<const Merge> merges);
    /// Its place in the list, or kNone.
    uint32_t find(int32_t left, int32_t right) const;

  private:
    struct Entry {
        int32_t right;
        uint32_t merge;
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

    /// Appends the ids of one piece. Starts from single characters or bytes (a byte without a token
    /// is left out) and merges the pair of the best rank, leftmost first, until no pair has one.
    ///
    /// Cost    O(n log n); the ids of a short piece seen before are copied
    /// Source  Sennrich et al. 2016, algorithm 1; over bytes as in GPT-2, over characters as in
    ///         SentencePiece
    void encode(std::string_view piece);

  private:
    struct Symbol {
        int32_t id;
        uint32_t before, behind;  // neighbours that are left
        uint32_t merge;           // of this one and the one behind
    };
    struct Range {
        size_t start, count;
    };

    bool copy_seen(std::string_view piece);
    bool take_whole(std::string_view piece);
    void spell(std::string_view piece);
    void add_bytes(std::string_view bytes);
    void add_symbol(int32_t id);
    void merge();
    void propose(uint32_t at);
    void join(uint32_t at);

    const Vocab& vocab_;
    const MergeTable& table_;
    std::vector<int32_t>& out_;
    std::vector<Symbol> symbols_;
    std::vector<uint64_t> heap_;  // rank << 32 | place of the left symbol, smallest on top
    std::unordered_map<std::string, Range> seen_;  // piece: where its ids stand in out
};

}  // namespace hf
