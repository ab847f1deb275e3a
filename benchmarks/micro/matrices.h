// Matrices that are read from memory and not from caches.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "libcore/codec/codec.h"

namespace hf::bench {

/// One mapping, written once so that every page is there.
class Arena {
  public:
    /// has_huge_pages  asks for pages of 2 MiB; the system may have none
    /// Errors          hf::Error when there is not so much memory
    Arena(size_t bytes, bool has_huge_pages);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    std::span<std::byte> bytes() const { return {begin_, bytes_}; }

  private:
    std::byte* begin_;
    size_t bytes_;
};

/// Copies of one random matrix in different memory. They hold the same bytes, but no cache knows
/// that; a pass over all of them in turn finds none in a cache that is smaller than all together.
class Matrices {
  public:
    /// Fills the arena; it must be large enough for one, and outlive this.
    Matrices(const Codec& codec, Shape shape, const Arena& arena);

    const Codec& codec() const { return codec_; }
    Shape shape() const { return shape_; }
    size_t count() const { return count_; }
    uint64_t bytes() const { return tensor_bytes(codec_, shape_); }  // of one
    const std::byte* tensor(size_t i) const { return memory_.data() + i % count_ * distance_; }
    cpu::WeightView view(size_t i) const {
        return view_of(codec_, tensor(i), shape_,
                       reinterpret_cast<const std::byte*>(levels_.data()));
    }

  private:
    const Codec& codec_;
    Shape shape_;
    std::span<std::byte> memory_;
    size_t distance_, count_;
    std::vector<float> levels_;
};

}  // namespace hf::bench
