#include "libcore/text/bpe.h"

#include <algorithm>
#include <functional>

namespace hf {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr size_t kSeenPieces = 1 << 15;  // bounds of the memory of pieces
constexpr size_t kSeenPieceBytes = 32;

}  // namespace

MergeTable::MergeTable(std::span<const Merge> merges) {
    std::vector<uint32_t> ranks(merges.size());
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = rank;
    std::sort(ranks.begin(), ranks.end(), [&](uint32_t a, uint32_t b) {
        const Merge &x = merges[a], &y = merges[b];
        return x.left != y.left ? x.left < y.left : x.right != y.right ? x.right < y.right : a > b;
    });
    entries_.reserve(ranks.size());
    starts_.assign(1, 0);
    for (const uint32_t rank : ranks) {
        while (starts_.size() <= size_t(merges[rank].left))
            starts_.push_back(uint32_t(entries_.size()));
        entries_.push_back({merges[rank].right, rank});
    }
    starts_.push_back(uint32_t(entries_.size()));
}

std::optional<uint32_t> MergeTable::rank(int32_t left, int32_t right) const {
    const size_t bucket = size_t(left);
    if (bucket + 1 >= starts_.size()) return std::nullopt;
    const auto end = entries_.begin() + starts_[bucket + 1];
    const auto found = std::lower_bound(entries_.begin() + starts_[bucket], end, right,
                                        [](const Entry& e, int32_t id) { return e.right < id; });
    if (found == end || found->right != right) return std::nullopt;
    return found->rank;
}

void BpeEncoder::encode(std::string_view piece) {
    if (copy_seen(piece) || take_whole(piece)) return;
    const size_t start = out_.size();
    merge(piece);
    if (piece.size() <= kSeenPieceBytes && seen_.size() < kSeenPieces)
        seen_.emplace(piece, Range{start, out_.size() - start});
}

bool BpeEncoder::copy_seen(std::string_view piece) {
    if (piece.size() > kSeenPieceBytes) return false;
    const auto found = seen_.find(std::string(piece));
    if (found == seen_.end()) return false;
    const auto [start, count] = found->second;
    for (size_t i = start; i < start + count; ++i) out_.push_back(out_[i]);
    return true;
}

bool BpeEncoder::take_whole(std::string_view piece) {
    const auto& whole = vocab_.whole_pieces;
    const auto found = std::lower_bound(
        whole.begin(), whole.end(), piece,
        [&](int32_t id, std::string_view text) { return vocab_.token(id) < text; });
    if (found == whole.end() || vocab_.token(*found) != piece) return false;
    out_.push_back(*found);
    return true;
}

void BpeEncoder::merge(std::string_view piece) {
    symbols_.clear();
    for (const char c : piece) {
        const int32_t id = vocab_.byte_ids[uint8_t(c)];
        const uint32_t at = uint32_t(symbols_.size());
        if (id >= 0) symbols_.push_back({id, at - 1, at + 1});  // the first one's before is kNone
    }
    if (symbols_.empty()) return;
    symbols_.back().behind = kNone;

    heap_.clear();
    for (uint32_t at = 0; at < symbols_.size(); ++at) propose(at);
    while (!heap_.empty()) {
        std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
        const Merge& m = vocab_.merges[heap_.back() >> 32];
        const uint32_t at = uint32_t(heap_.back());
        heap_.pop_back();
        const uint32_t behind = symbols_[at].behind;  // either side may have changed since
        if (symbols_[at].id != m.left || behind == kNone || symbols_[behind].id != m.right)
            continue;
        join(at, m.merged);
    }
    for (uint32_t at = 0; at != kNone; at = symbols_[at].behind) out_.push_back(symbols_[at].id);
}

/// Offers the pair that begins at `at`, if it has a rank.
void BpeEncoder::propose(uint32_t at) {
    const uint32_t behind = symbols_[at].behind;
    if (behind == kNone) return;
    const auto rank = table_.rank(symbols_[at].id, symbols_[behind].id);
    if (!rank) return;
    heap_.push_back(uint64_t(*rank) << 32 | at);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void BpeEncoder::join(uint32_t at, int32_t merged) {
    Symbol& left = symbols_[at];
    Symbol& right = symbols_[left.behind];
    left.id = merged;
    left.behind = right.behind;
    right.id = -1;
    if (left.behind != kNone) symbols_[left.behind].before = at;
    if (left.before != kNone) propose(left.before);
    propose(at);
}

}  // namespace hf
