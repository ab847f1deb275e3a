// Pages of mapped files: which ones bytes lie in, that touching reads them all or stops, and that a
// lock holds them and no others.
#include "libcore/device/host_pages.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>

#include "libcore/base/refusal.h"
#include "libcore/file/mapped_file.h"
#include "tests/support/resident.h"
#include "tests/unit/temp_folder.h"

using namespace hf;
using namespace hf::test;

namespace {

using Span = std::span<const std::byte>;

const size_t kPage = size_t(sysconf(_SC_PAGESIZE));
constexpr size_t kMib = 1 << 20;
const std::atomic<bool> kNever = false;

/// A mapped file of so many bytes of its own.
struct Mapped {
    explicit Mapped(size_t bytes)
        : file((folder.write("x", std::string(bytes, 'x')), folder / "x")) {}
    PageRanges pages() const { return pages_of({file.bytes()}); }

    size_t resident() const { return resident_bytes(pages()[0]); }

    TempFolder folder;
    MappedFile file;
};

/// Exit code of a child process that does this.
template <class Action>
int exit_code_of(Action&& action) {
    const pid_t child = fork();
    if (child == 0) _exit(action());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("pages: each page that bytes lie in is there once, in order, neighbours joined") {
    const Mapped mapped(16 * kPage);
    const Span all = mapped.file.bytes();
    const struct {
        const char* what;
        std::vector<std::pair<size_t, size_t>> spans, pages;  // begin, end
    } rows[] = {
        {"nothing", {}, {}},
        {"an empty span", {{5, 5}}, {}},
        {"one byte", {{5, 6}}, {{0, kPage}}},
        {"a page", {{kPage, 2 * kPage}}, {{kPage, 2 * kPage}}},
        {"a byte more", {{kPage, 2 * kPage + 1}}, {{kPage, 3 * kPage}}},
        {"across an edge", {{kPage - 1, kPage + 1}}, {{0, 2 * kPage}}},
        {"the same page twice", {{7, 9}, {3, 5}}, {{0, kPage}}},
        {"neighbours", {{kPage + 1, 2 * kPage}, {1, kPage}}, {{0, 2 * kPage}}},
        {"apart", {{4 * kPage, 4 * kPage + 1}, {1, 2}}, {{0, kPage}, {4 * kPage, 5 * kPage}}},
        {"one inside another", {{0, 5 * kPage}, {kPage, 2 * kPage}}, {{0, 5 * kPage}}},
        {"the end", {{16 * kPage - 1, 16 * kPage}}, {{15 * kPage, 16 * kPage}}},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row.what));
        std::vector<Span> spans;
        for (const auto& [begin, end] : row.spans) spans.push_back(all.subspan(begin, end - begin));
        std::vector<std::pair<size_t, size_t>> found;
        size_t bytes = 0;
        const PageRanges pages = pages_of(spans);
        for (const Span range : pages) {
            const size_t begin = size_t(range.data() - all.data());
            found.emplace_back(begin, begin + range.size());
            bytes += range.size();
        }
        CHECK(found == row.pages);
        CHECK(total_bytes(pages) == bytes);
    }
}

TEST_CASE("touch: all pages are in memory afterwards, and progress goes up to the end") {
    for (const unsigned threads : {1u, 3u})
        for (const size_t size : {size_t(1), kPage + 1, 5 * kMib + 7}) {
            CAPTURE(threads);
            CAPTURE(size);
            const Mapped mapped(size);
            REQUIRE(mapped.resident() == 0);
            cpu::ThreadPool pool(threads);
            std::vector<uint64_t> seen;
            const uint64_t all = total_bytes(mapped.pages());
            CHECK(touch_pages(
                mapped.pages(), pool,
                [&](uint64_t done, uint64_t total) {
                    CHECK(total == all);
                    seen.push_back(done);
                },
                kNever));
            CHECK(mapped.resident() == all);
            CHECK(std::ranges::is_sorted(seen));
            CHECK(seen.back() == all);
        }
}

TEST_CASE("touch: a stop in the midst leaves the rest alone, and the progress still ends") {
    const Mapped mapped(8 * kMib);
    const Span file = mapped.file.bytes();
    madvise(const_cast<std::byte*>(file.data()), file.size(), MADV_RANDOM);  // nothing read ahead
    cpu::ThreadPool pool(1);
    std::atomic<bool> stop = false;
    uint64_t last = 0;
    const Progress progress = [&](uint64_t done, uint64_t) {
        last = done;
        if (done == 3 * kMib) stop = true;
    };
    CHECK_FALSE(touch_pages(mapped.pages(), pool, progress, stop));
    CHECK(last == 8 * kMib);
    CHECK(mapped.resident() >= 3 * kMib);
    CHECK(mapped.resident() < 8 * kMib);
}

TEST_CASE("touch: one that is stopped before it begins touches nothing; nothing to do is done") {
    const Mapped mapped(kMib);
    cpu::ThreadPool pool(2);
    const std::atomic<bool> stop = true;
    CHECK_FALSE(touch_pages(mapped.pages(), pool, {}, stop));
    CHECK(mapped.resident() == 0);
    CHECK(touch_pages({}, pool, {}, kNever));
}

TEST_CASE("lock: it holds its pages and no others, without reading them, until it goes") {
    const Mapped mapped(10 * kPage);
    const Span file = mapped.file.bytes();
    const uint64_t before = locked_bytes();
    {
        PageLock lock(pages_of({file.subspan(1, kPage), file.subspan(5 * kPage, 1)}));
        CHECK(lock.bytes() == 3 * kPage);
        CHECK(locked_bytes() == before + 3 * kPage);
        CHECK(mapped.resident() == 0);
        const PageLock moved(std::move(lock));
        CHECK(moved.bytes() == 3 * kPage);
        CHECK(locked_bytes() == before + 3 * kPage);
        cpu::ThreadPool pool(1);
        CHECK(touch_pages(mapped.pages(), pool, {}, kNever));
    }
    if (can_unlock()) CHECK(locked_bytes() == before);
}

TEST_CASE("lock: what may not be locked is refused with both numbers, and nothing stays locked") {
    const Mapped mapped(14 * kPage);  // within the 64 KiB that every process may lock
    const Span file = mapped.file.bytes();
    const auto in_child = [&](uint64_t limit, const PageRanges& pages) {
        return exit_code_of([&] {
            const uint64_t before = locked_bytes();
            limit_locking(before + limit);
            try {
                const PageLock lock(pages);
                return locked_bytes() == before + lock.bytes() ? 0 : 1;
            } catch (const Refusal& refusal) {
                const std::string numbers =
                    fmt::format("{} bytes cannot be locked + RLIMIT_MEMLOCK is {}",
                                total_bytes(pages), before + limit);
                if (can_unlock() && locked_bytes() != before) return 2;
                if (!has_words(refusal.hint(), "ulimit -l + LimitMEMLOCK + memory.lock")) return 3;
                return has_words(refusal.what(), numbers) ? 4 : 5;
            }
        });
    };
    const PageRanges whole = pages_of({file});
    const PageRanges parts = pages_of({file.first(1), file.subspan(4 * kPage, 8 * kPage)});
    CHECK(in_child(14 * kPage, whole) == 0);
    CHECK(in_child(14 * kPage - 1, whole) == 4);
    CHECK(in_child(9 * kPage, parts) == 0);
    CHECK(in_child(8 * kPage, parts) == 4);
}

TEST_CASE("lock: what is allowed is compared before anything is done") {
    CHECK_NOTHROW(check_lockable(100, {}));
    CHECK_NOTHROW(check_lockable(100, 100));
    CHECK(has_words(error_of([] { check_lockable(100, 30); }),
                    "refused: 100 bytes + may lock 30 (RLIMIT_MEMLOCK) + 70 are missing"));
}
