// hf-run and the memory that its model is read from: locked when asked, refused where that is not
// allowed.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <csignal>
#include <optional>

#include "tests/support/data.h"
#include "tests/support/resident.h"
#include "tests/tools/process.h"

using namespace hf::test;

namespace {

constexpr uint64_t kDemoMatrixBytes = 20 << 20;  // at least
constexpr uint64_t kAmple = 64 << 20, kEnough = 4 << 20, kTooLittle = 1 << 20;

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

TEST_CASE("hf-run --lock: the weights are locked while it runs" *
          doctest::skip(!may_lock(kAmple))) {
    for (const bool is_locked : {false, true}) {
        std::optional<uint64_t> locked;
        RunOptions options;
        options.on_output = [&](pid_t pid, const std::string&) {  // of an answer of some seconds
            if (!locked) locked = locked_bytes(pid), kill(pid, SIGINT);
            return true;
        };
        std::vector<std::string> command = {HF_RUN,  "-m",           demo_model_path(),
                                            "--raw", "Once",         "--ignore-eos",
                                            "-q",    "--max-tokens", "2000"};
        if (is_locked) command.push_back("--lock");
        options.environment = {"HIPFIRE_HOST_HEADROOM_MB=0"};
        CHECK(run_process(command, options).code == 130);
        if (is_locked)
            CHECK(locked > kDemoMatrixBytes);
        else
            CHECK(locked == 0);
    }
}

TEST_CASE("hf-run --lock: the answer is the same" * doctest::skip(!may_lock(kEnough))) {
    const Outcome plain = answer({}), locked = answer({"--lock"});
    CHECK(plain.code == 0);
    CHECK(locked.code == 0);
    CHECK(locked.out == plain.out);
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
