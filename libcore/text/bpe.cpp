#include "libcore/text/bpe.h"

#include <algorithm>
#include <functional>

#include "libcore/text/unicode.h"

namespace hf {
namespace {

constexpr uint32_t kNone = MergeTable::kNone;
constexpr size_t kSeenPieces = 1 << 15;  // bounds of the memory of pieces
constexpr size_t kSeenPieceBytes = 32;

}  // namespace

MergeTable::MergeTable(std::span<const Merge> merges) {
    std::vector<uint32_t> order(merges.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        const Merge &x = merges[a], &y = merges[b];
        return x.left != y.left ? x.left < y.left : x.right != y.right ? x.right < y.right : a > b;
    });
    entries_.reserve(order.size());
    starts_.assign(1, 0);
    for (const uint32_t i : order) {
        while (starts_.size() <= size_t(merges[i].left))
            starts_.push_back(uint32_t(entries_.size()));
        entries_.push_back({merges[i].right, i});
    }
    starts_.push_back(uint32_t(entries_.size()));
}

uint32_t MergeTable::find(int32_t left, int32_t right) const {
    const size_t bucket = size_t(left);
    if (bucket + 1 >= starts_.size()) return kNone;
    const auto end = entries_.begin() + starts_[bucket + 1];
    const auto found = std::lower_bound(entries_.begin() + starts_[bucket], end, right,
                                        [](const Entry& e, int32_t id) { return e.right < id; });
    return found == end || found->right != right ? kNone : found->merge;
}

void BpeEncoder::encode(std::string_view piece) {
    if (copy_seen(piece) || take_whole(piece)) return;
    const size_t start = out_.size();
    spell(piece);
    merge();
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

/// The piece as symbols, none of them merged.
void BpeEncoder::spell(std::string_view piece) {
    symbols_.clear();
    if (vocab_.characters.empty()) return add_bytes(piece);
    const auto& known = vocab_.characters;
    for (size_t at = 0; at < piece.size();) {
        const CodePoint c = code_point_at(piece, at);
        const auto found =
            std::lower_bound(known.begin(), known.end(), c.value,
                             [](const Character& k, char32_t value) { return k.value < value; });
        if (found != known.end() && found->value == c.value)
            add_symbol(found->id);
        else
            add_bytes(piece.substr(at, c.bytes));
        at += c.bytes;
    }
}

void BpeEncoder::add_bytes(std::string_view bytes) {
    for (const char c : bytes)
        if (const int32_t id = vocab_.byte_ids[uint8_t(c)]; id >= 0) add_symbol(id);
}

void BpeEncoder::add_symbol(int32_t id) {
    const uint32_t at = uint32_t(symbols_.size());
    symbols_.push_back({id, at - 1, at + 1, kNone});  // the first one's before is kNone
}

void BpeEncoder::merge() {
    if (symbols_.empty()) return;
    symbols_.back().behind = kNone;
    heap_.clear();
    for (uint32_t at = 0; at < symbols_.size(); ++at) propose(at);
    while (!heap_.empty()) {
        std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
        const uint32_t rank = uint32_t(heap_.back() >> 32), at = uint32_t(heap_.back());
        heap_.pop_back();
        const uint32_t here = symbols_[at].merge;  // either side may have changed since
        if (here != kNone && vocab_.merges[here].rank == rank) join(at);
    }
    for (uint32_t at = 0; at != kNone; at = symbols_[at].behind) out_.push_back(symbols_[at].id);
}

/// Looks up the pair that begins at `at`, and offers it if it merges.
void BpeEncoder::propose(uint32_t at) {
    Symbol& left = symbols_[at];
    left.merge = left.behind == kNone ? kNone : table_.find(left.id, symbols_[left.behind].id);
    if (left.merge == kNone) return;
    heap_.push_back(uint64_t(vocab_.merges[left.merge].rank) << 32 | at);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void BpeEncoder::join(uint32_t at) {
    Symbol& left = symbols_[at];
    Symbol& right = symbols_[left.behind];
    left.id = vocab_.merges[left.merge].merged;
    left.behind = right.behind;
    right.merge = kNone;  // it is gone
    if (left.behind != kNone) symbols_[left.behind].before = at;
    if (left.before != kNone) propose(left.before);
    propose(at);
}

}  // namespace hf
