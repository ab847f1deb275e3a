#include "libcore/device/host_pages.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "libcore/base/refusal.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14; older headers lack it
#endif

namespace hf {
namespace {

using Span = std::span<const std::byte>;

uint64_t page_size() {
    static const uint64_t size = uint64_t(sysconf(_SC_PAGESIZE));
    return size;
}

const std::byte* end_of(Span span) {
    return span.data() + span.size();
}

Span whole_pages(Span span) {
    const uint64_t mask = page_size() - 1;
    const uint64_t before = uintptr_t(span.data()) & mask;
    return {span.data() - before, (before + span.size() + mask) & ~mask};
}

/// A stop waits for one of these on each thread: even a slow disk brings some MB a second.
constexpr uint64_t kSliceBytes = 1 << 20;

std::vector<Span> slices_of(const PageRanges& pages) {
    std::vector<Span> slices;
    for (Span range : pages)
        for (; !range.empty(); range = range.subspan(slices.back().size()))
            slices.push_back(range.first(std::min<size_t>(range.size(), kSliceBytes)));
    return slices;
}

/// Populating asks for long reads, where the kernel can; a byte of each page is read all the same,
/// because the host of a virtual machine may give a page only to who looks at it
/// (docs/perf/2026-11-30-loading.md).
void touch(Span slice) {
    madvise(const_cast<std::byte*>(slice.data()), slice.size(), MADV_POPULATE_READ);
    for (size_t at = 0; at < slice.size(); at += page_size())
        [[maybe_unused]] volatile std::byte byte = slice[at];
}

constexpr const char* kLockHint =
    "raise the limit (ulimit -l, LimitMEMLOCK= of a systemd unit), or set memory.lock = false";

std::string lock_limit() {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{}", limit.rlim_cur);
}

void unlock(const PageRanges& pages) {
    for (const Span range : pages) munlock(range.data(), range.size());
}

}  // namespace

PageRanges pages_of(std::vector<Span> spans) {
    std::ranges::sort(spans, {}, [](Span s) { return s.data(); });
    PageRanges pages;
    for (const Span span : spans) {
        if (span.empty()) continue;
        const Span whole = whole_pages(span);
        if (pages.empty() || end_of(pages.back()) < whole.data())
            pages.push_back(whole);
        else if (end_of(pages.back()) < end_of(whole))
            pages.back() = {pages.back().data(), end_of(whole)};
    }
    return pages;
}

uint64_t total_bytes(const PageRanges& pages) {
    uint64_t bytes = 0;
    for (const Span range : pages) bytes += range.size();
    return bytes;
}

bool touch_pages(const PageRanges& pages, cpu::ThreadPool& pool, const Progress& progress,
                 const std::atomic<bool>& stop) {
    const std::vector<Span> slices = slices_of(pages);
    const uint64_t all = total_bytes(pages);
    std::atomic<uint64_t> done = 0;
    pool.run(uint32_t(slices.size()), [&](uint32_t part, unsigned member) {
        if (stop) return;
        touch(slices[part]);
        done += slices[part].size();
        if (member == 0 && progress) progress(done, all);
    });
    if (progress) progress(all, all);  // also when it was stopped: a line on a terminal goes
    return done == all;
}

void check_lockable(uint64_t bytes, std::optional<uint64_t> lockable) {
    if (!lockable || bytes <= *lockable) return;
    throw Refusal(
        fmt::format("{} bytes of mapped weights would be locked in memory, but this process may "
                    "lock {} (RLIMIT_MEMLOCK): {} are missing",
                    bytes, *lockable, bytes - *lockable),
        kLockHint);
}

PageLock::PageLock(PageRanges pages) {
    for (size_t i = 0; i < pages.size(); ++i) {
        if (mlock2(pages[i].data(), pages[i].size(), MLOCK_ONFAULT) == 0) continue;
        const int error = errno;
        const uint64_t wanted = total_bytes(pages);
        pages.resize(i);
        unlock(pages);
        throw Refusal(fmt::format("{} bytes cannot be locked in memory: {} (RLIMIT_MEMLOCK is {})",
                                  wanted, std::strerror(error), lock_limit()),
                      kLockHint);
    }
    pages_ = std::move(pages);
}

PageLock::~PageLock() {
    unlock(pages_);
}

}  // namespace hf
