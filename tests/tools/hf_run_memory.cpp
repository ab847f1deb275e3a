// hf-run and the memory that its model is read from: locked when asked, refused where that is not
// allowed.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>

#include "tests/support/data.h"
#include "tests/support/resident.h"
#include "tests/tools/process.h"

using namespace hf::test;

namespace {

constexpr uint64_t kMatrixBytes = 1'600'000;  // at least, of the model's 1.7 MB
constexpr uint64_t kEnough = 4 << 20, kTooLittle = 1 << 20;

Outcome answer(std::vector<std::string> flags, RunOptions options = {}) {
    const std::vector<std::string> command = {
        HF_RUN,         "-m",    data_path("models/tiny_llama"),
        "--prompt-ids", "1,2,3", "-q",
        "--temp",       "0",     "--ignore-eos",
        "--max-tokens", "20",    "--print-ids"};
    flags.insert(flags.begin(), command.begin(), command.end());
    options.environment = {"HIPFIRE_HOST_HEADROOM_MB=0"};
    return run_process(flags, options);
}

/// The same from a process that may lock so many bytes.
template <class Check>
bool holds_where_locking_is_limited(uint64_t bytes, Check&& check) {
    const pid_t child = fork();
    if (child == 0) {
        limit_locking(bytes);
        _exit(check() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("hf-run --lock: the weights are locked while it runs, and the answer is the same" *
          doctest::skip(!may_lock(kEnough))) {
    uint64_t most = 0;
    RunOptions options;
    options.on_output = [&](pid_t pid, const std::string&) {
        most = std::max(most, locked_bytes(pid));
        return true;
    };
    const Outcome plain = answer({}, options);
    CHECK(plain.code == 0);
    CHECK(most == 0);
    const Outcome locked = answer({"--lock"}, options);
    CHECK(locked.code == 0);
    CHECK(locked.out == plain.out);
    CHECK(most > kMatrixBytes);
}

TEST_CASE("hf-run --lock: where less may be locked it is refused with both numbers and a way out" *
          doctest::skip(!may_lock(kEnough))) {
    CHECK(holds_where_locking_is_limited(kTooLittle, [] {
        const Outcome refused = answer({"--lock"});
        return refused.code == 4 && refused.out.empty() &&
               contains(refused.err, "may lock 1048576 (RLIMIT_MEMLOCK)") &&
               contains(refused.err, "hf-run: hint: raise the limit (ulimit -l, LimitMEMLOCK=");
    }));
    CHECK(holds_where_locking_is_limited(kTooLittle, [] { return answer({}).code == 0; }));
    CHECK(holds_where_locking_is_limited(kEnough, [] { return answer({"--lock"}).code == 0; }));
}
