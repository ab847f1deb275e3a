#include "benchmarks/micro/matrices.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/codec/random_matrix.h"

namespace hf::bench {
namespace {

constexpr size_t kHugePage = size_t(2) << 20, kLine = 64;

size_t round_up(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

/// Fills `out` with copies of what stands at its begin.
void repeat(std::byte* out, size_t pattern, size_t bytes) {
    for (size_t done = pattern; done < bytes; done *= 2)
        std::memcpy(out + done, out, std::min(done, bytes - done));
}

/// A matrix whose rows repeat: drawing each row would take minutes.
void fill_matrix(const Codec& codec, Shape shape, const float* levels, std::byte* out) {
    const Shape few{std::min<uint64_t>(64, shape.rows), shape.cols};
    std::vector<std::byte> pattern(tensor_bytes(codec, few));
    fill_random(codec, few, /*seed=*/1, levels, pattern.data());
    const auto* unused = reinterpret_cast<const std::byte*>(levels);
    const cpu::WeightView from = view_of(codec, pattern.data(), few, unused);
    const cpu::WeightView to = view_of(codec, out, shape, unused);
    const size_t front = size_t(from.base - pattern.data()), rows = from.rows * from.row_bytes;
    std::memcpy(out, pattern.data(), front + rows);
    repeat(out + front, rows, to.rows * to.row_bytes);
    const size_t behind = pattern.size() - front - rows;  // a sidecar
    std::byte* const end = out + front + to.rows * to.row_bytes;
    std::memcpy(end, pattern.data() + front + rows, behind);
    if (behind > 0) repeat(end, behind, tensor_bytes(codec, shape) - size_t(end - out));
}

}  // namespace

Arena::Arena(size_t bytes, bool has_huge_pages) : bytes_(round_up(bytes, kHugePage)) {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        throw Error(
            fmt::format("there is no memory for {} bytes of matrices; ask for fewer", bytes_));
    madvise(at, bytes_, has_huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    begin_ = static_cast<std::byte*>(at);
    std::memset(begin_, 1, bytes_);
}

Arena::~Arena() {
    munmap(begin_, bytes_);
}

Matrices::Matrices(const Codec& codec, Shape shape, const Arena& arena)
    : codec_(codec),
      shape_(shape),
      memory_(arena.bytes()),
      distance_(round_up(tensor_bytes(codec, shape), kLine)),
      count_(memory_.size() / distance_),
      levels_(random_levels(1)) {
    if (count_ == 0)
        throw Error(fmt::format("a matrix of {} bytes does not fit into {}; ask for more",
                                distance_, memory_.size()));
    fill_matrix(codec, shape, levels_.data(), memory_.data());
    repeat(memory_.data(), distance_, count_ * distance_);
}

}  // namespace hf::bench
