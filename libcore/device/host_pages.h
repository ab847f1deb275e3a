// Pages of mapped memory: read in before somebody waits for them, and locked so that they stay.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpuexec/thread_pool.h"
#include "libcore/base/progress.h"

namespace hf {

/// Whole pages, in order of their addresses; ranges do not touch each other.
using PageRanges = std::vector<std::span<const std::byte>>;

/// The pages that these bytes lie in, each once. Empty spans lie in none.
PageRanges pages_of(std::vector<std::span<const std::byte>> spans);
uint64_t total_bytes(const PageRanges& pages);

/// Has every page read into memory and mapped, so that a later read waits for no disk: slice by
/// slice, on all threads of the pool. What does not fit memory pushes out what was read before.
///
/// progress  called on the calling thread: bytes done, bytes in all
/// stop      looked at before each slice
/// Returns   false when it was stopped
/// Errors    none; a file that became shorter is met as report_shrunk_files() says
///           (file/mapped_file.h)
bool touch_pages(const PageRanges& pages, cpu::ThreadPool& pool, const Progress& progress,
                 const std::atomic<bool>& stop);

/// Refuses to lock more than this process may (HostRam::lockable).
/// Errors  Refusal with both numbers and what to do
void check_lockable(uint64_t bytes, std::optional<uint64_t> lockable);

/// Keeps pages in memory from the moment they are first read (or now, where they were) until it
/// goes. Moves, never copies. The pages must stay mapped for as long; a page that two of these
/// hold is free when the first one goes.
/// Source  mlock2(2), MLOCK_ONFAULT
class PageLock {
  public:
    PageLock() = default;
    /// Nothing is read here, so this takes no time. All or nothing.
    /// Errors  Refusal with the bytes wanted and the limit
    explicit PageLock(PageRanges pages);
    PageLock(PageLock&& other) noexcept { pages_.swap(other.pages_); }
    PageLock& operator=(PageLock&& other) noexcept {
        pages_.swap(other.pages_);
        return *this;
    }
    ~PageLock();

    uint64_t bytes() const { return total_bytes(pages_); }

  private:
    PageRanges pages_;
};

}  // namespace hf
