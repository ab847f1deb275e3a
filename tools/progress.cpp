#include "tools/progress.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "tools/output.h"
#include "tools/signals.h"

namespace hf {
namespace {

using Clock = std::chrono::steady_clock;

struct Line {
    const char *tool, *what;
    Clock::time_point next = Clock::now() + std::chrono::seconds(1);  // shown from then on
    size_t width = 0;  // of what is shown; it never becomes shorter

    Line(const char* tool_name, const char* work) : tool(tool_name), what(work) {}
    ~Line() { clear(); }

    void show(uint64_t done, uint64_t total) {
        if (done >= total || interrupted()) return clear();
        if (Clock::now() < next) return;
        next = Clock::now() + std::chrono::milliseconds(200);
        const std::string text = fmt::format("{}: {}, {} %", tool, what, 100 * done / total);
        write_error('\r' + text);
        width = text.size();
    }
    void clear() {  // without escapes, which not all terminals know
        if (width > 0) write_error('\r' + std::string(width, ' ') + '\r');
        width = 0;
    }
};

}  // namespace

Progress terminal_progress(const char* tool, const char* what) {
    if (!is_terminal(STDERR_FILENO)) return {};
    return [line = std::make_shared<Line>(tool, what)](uint64_t done, uint64_t total) {
        line->show(done, total);
    };
}

}  // namespace hf
