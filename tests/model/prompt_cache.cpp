// What a session holds of the next prompt: bits as without it, and no token fed twice in vain.
#include <doctest/doctest.h>

#include "libcore/run/prompt.h"
#include "libcore/run/prompt_cache.h"
#include "libcore/run/sampler.h"
#include "tests/support/data.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;

namespace {

const std::atomic<bool> kNever{false};
const std::vector<std::string> kModels = {"models/tiny_qwen35_a", "models/tiny_qwen3"};

/// Below 200, so that 255 is never the next one.
std::vector<int32_t> some_ids(size_t n) {
    Random random(4);
    std::vector<int32_t> ids(n);
    for (int32_t& id : ids) id = int32_t(random.next() % 200);
    return ids;
}

Setup one_thread() {
    Setup setup;
    setup.threads = 1;  // the models are tiny
    return setup;
}

bool is_recurrent(const Session& session) {
    return session.state_layout().recurrent_bytes > 0;
}

struct Fed {
    uint32_t reused;
    std::vector<float> logits;
};

Fed feed(Session& session, PromptCache& cache, std::span<const int32_t> prompt, uint32_t fork) {
    const uint32_t reused = cache.rewind(prompt);
    CHECK(session.length() == reused);
    auto logits = feed_prompt(
        session, prompt.subspan(reused), [&](size_t, size_t) { cache.keep(fork); }, kNever);
    CHECK(std::ranges::equal(session.ids(), prompt));
    return {reused, std::move(*logits)};
}

/// By a session that has just begun.
std::vector<float> feed_fresh(Session& session, std::span<const int32_t> prompt) {
    session.restore({{}, std::vector<std::byte>(session.state_layout().recurrent_bytes)});
    return *feed_prompt(session, prompt, {}, kNever);
}

}  // namespace

TEST_CASE(
    "prompt cache: a prompt that parts from the last one anywhere gets the bits of one fed "
    "from the start, and at most 63 tokens more are fed than are new") {
    for (const std::string& name : kModels) {
        CAPTURE(name);
        const auto first = some_ids(70);
        Loaded m(data_path(name), one_thread()), fresh(data_path(name), one_thread());
        PromptCache cache(m.session);
        feed(m.session, cache, first, uint32_t(first.size()));
        for (uint32_t fork = uint32_t(first.size()); fork-- > 0;) {
            CAPTURE(fork);
            greedy(m.session, 7, 3);  // an answer, which the next prompt has not
            auto prompt = first;      // parts from the one before at `fork`
            prompt.resize(fork);
            prompt.insert(prompt.end(), {255, 1});
            const Fed fed = feed(m.session, cache, prompt, fork);
            CHECK(fed.reused == (is_recurrent(m.session) ? fork / 64 * 64 : fork));
            CHECK(fed.logits == feed_fresh(fresh.session, prompt));
        }
    }
}

TEST_CASE("prompt cache: of a prompt that is held already one token at least is fed") {
    for (const std::string& name : kModels) {
        CAPTURE(name);
        Loaded fresh(data_path(name), one_thread());
        for (const size_t n : {1, 63, 64, 65, 128, 129}) {
            CAPTURE(n);
            Loaded m(data_path(name), one_thread());
            PromptCache cache(m.session);
            const auto prompt = some_ids(n);
            const auto want = feed(m.session, cache, prompt, uint32_t(n)).logits;
            for (const size_t shorter : {n, n, (n + 1) / 2}) {
                const auto again = std::span(prompt).first(shorter);
                const Fed fed = feed(m.session, cache, again, uint32_t(shorter));
                const auto most = uint32_t(shorter) - 1;
                CHECK(fed.reused <= most);
                if (!is_recurrent(m.session)) CHECK(fed.reused == most);
                CHECK(fed.logits == (shorter == n ? want : feed_fresh(fresh.session, again)));
            }
        }
    }
}

TEST_CASE("prompt cache: the last points are kept, no more than the bound, and all can be used") {
    Loaded m(data_path(kModels[0]), one_thread()), fresh(data_path(kModels[0]), one_thread());
    PromptCache cache(m.session);
    const auto ids = some_ids(440);
    feed(m.session, cache, ids, 0);
    CHECK(cache.lengths() == std::vector<uint32_t>{192, 256, 320, 384});
    for (const uint32_t fork : {400, 330, 256, 200, 100}) {
        CAPTURE(fork);
        auto other = ids;
        other.resize(fork);
        other.push_back(255);
        const Fed fed = feed(m.session, cache, other, fork);
        CHECK(fed.reused == (fork < 192 ? 0 : fork / 64 * 64));
        CHECK(fed.logits == feed_fresh(fresh.session, other));
    }
}
