// What a session promises: results that depend on the ids alone, not on threads, cuts or detours.
#include <doctest/doctest.h>

#include "libcore/base/error.h"
#include "tests/support/data.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;

namespace {

const std::vector<std::string> kModels = {"models/tiny_qwen35_a", "models/tiny_qwen35_b"};

std::vector<int32_t> long_ids(const std::string& folder) {
    return read_values<int32_t>(folder + "/long_input_ids.i32");
}

/// Logits of every token of the long prompt on the grid, then of 16 greedy tokens: all their bits.
std::vector<float> prompt_and_answer(Loaded& m, std::span<const int32_t> ids) {
    auto logits = run_ids(m.session, ids, cut_every(ids.size(), Session::kMaxTokens));
    const size_t vocab = m.model.config.vocab;
    int32_t next = argmax(std::span(logits).last(vocab));
    for (int i = 0; i < 16; ++i) {
        const uint32_t row = 0;
        const auto one = m.session.forward({&next, 1}, {&row, 1});
        logits.insert(logits.end(), one.begin(), one.end());
        next = argmax(one);
        m.session.commit(1);
    }
    return logits;
}

}  // namespace

TEST_CASE("session: the number of threads changes no bit") {
    for (const std::string& name : kModels) {
        CAPTURE(name);
        const std::string folder = data_path(name);
        Setup setup;
        setup.threads = 1;
        Loaded one(folder, setup);
        const auto want = prompt_and_answer(one, long_ids(folder));
        for (const unsigned threads : {2u, 3u, 5u, 8u}) {
            CAPTURE(threads);
            setup.threads = threads;
            Loaded many(folder, setup);
            CHECK(prompt_and_answer(many, long_ids(folder)) == want);
        }
    }
}

TEST_CASE("session: the scalar level and AVX2 give the same bits") {
    if (!cpu::cpu_has(cpu::Level::avx2)) {
        MESSAGE("skipped: this CPU has no AVX2");
        return;
    }
    for (const std::string& name : kModels)
        for (const char* kv : {"f32", "f16", "q8"}) {
            CAPTURE(name);
            CAPTURE(kv);
            const std::string folder = data_path(name);
            auto ids = long_ids(folder);
            ids.resize(70);  // more than a pass; plain code is slow
            Setup setup;
            setup.kv = kv;
            setup.level = cpu::Level::scalar;
            Loaded plain(folder, setup);
            setup.level = cpu::Level::avx2;
            Loaded wide(folder, setup);
            CHECK(prompt_and_answer(plain, ids) == prompt_and_answer(wide, ids));
        }
}

TEST_CASE("session: a verify pass of which n tokens are committed equals a pass of n tokens") {
    for (const std::string& name : kModels) {
        CAPTURE(name);
        const std::string folder = data_path(name);
        const auto ids = long_ids(folder);
        Loaded straight(folder), cut(folder);
        const auto first = cut_every(20, 20);
        run_ids(straight.session, ids, first);
        run_ids(cut.session, ids, first);
        for (uint32_t n = 0; n <= 8; ++n) {
            CAPTURE(n);
            const std::span<const int32_t> at(ids.data() + straight.session.length(), 8);
            cut.session.forward(at, {});
            cut.session.commit(n);
            if (n > 0) {
                straight.session.forward(at.first(n), {});
                straight.session.commit(n);
            }
            CHECK(cut.session.length() == straight.session.length());
            CHECK(cut.session.read_recurrent() == straight.session.read_recurrent());
        }
        const std::span<const int32_t> next(ids.data() + straight.session.length(), 1);
        const uint32_t row = 0;
        const auto a = straight.session.forward(next, {&row, 1});
        const auto b = cut.session.forward(next, {&row, 1});
        CHECK(std::ranges::equal(a, b));
    }
}

TEST_CASE("session: a commit waits for the next pass, but not longer than for one") {
    for (const std::string& name : kModels) {
        CAPTURE(name);
        const std::string folder = data_path(name);
        const auto ids = long_ids(folder);
        Loaded seen(folder), unseen(folder);
        uint32_t at = 0;
        for (const uint32_t n : {20u, 1u, 1u, 8u, 1u, 3u, 64u, 1u, 1u}) {
            const auto next = std::span(ids).subspan(at, n);
            seen.session.forward(next, {});
            seen.session.commit(n);
            const auto state = seen.session.read_recurrent();  // asks for it
            CHECK(seen.session.read_recurrent() == state);
            for (int twice = 0; twice < 2; ++twice) {  // the first one is forgotten
                unseen.session.forward(next, {});
                unseen.session.commit(twice == 0 ? 0 : n);
            }
            unseen.session.commit(0);
            at += n;
        }
        CHECK(unseen.session.read_recurrent() == seen.session.read_recurrent());
    }
}

TEST_CASE("session: a restored checkpoint owes nothing of what came after it") {
    const std::string folder = data_path(kModels[0]);
    const auto ids = long_ids(folder);
    Loaded m(folder);
    run_ids(m.session, ids, cut_every(10, 10));
    const Checkpoint ten = m.session.checkpoint();
    m.session.forward(std::span(ids).subspan(10, 1), {});
    m.session.commit(1);
    m.session.restore(ten);
    CHECK(m.session.read_recurrent() == ten.recurrent);
}

TEST_CASE("session: what was forwarded but not committed leaves no trace") {
    for (const std::string& name : kModels) {
        CAPTURE(name);
        const std::string folder = data_path(name);
        const auto ids = long_ids(folder);
        Loaded clean(folder), detour(folder);
        detour.session.forward(std::span(ids).subspan(60, 40), {});
        const auto want = prompt_and_answer(clean, ids);
        CHECK(prompt_and_answer(detour, ids) == want);
    }
}

TEST_CASE("session: a restored checkpoint continues with the same bits as the first time") {
    for (const std::string& name : kModels) {
        CAPTURE(name);
        const std::string folder = data_path(name);
        const auto ids = long_ids(folder);
        Loaded m(folder);
        run_ids(m.session, ids, cut_every(64, 64));
        const Checkpoint at_grid = m.session.checkpoint();
        const auto rest = std::span(ids).subspan(64);
        const auto want = prompt_and_answer(m, rest);

        m.session.restore(at_grid);
        CHECK(m.session.length() == 64);
        CHECK(std::ranges::equal(m.session.ids(), std::span(ids).first(64)));
        CHECK(prompt_and_answer(m, rest) == want);
    }
}

TEST_CASE("session: a model without recurrent state has checkpoints too") {
    const std::string folder = data_path("models/tiny_llama");
    const auto ids = long_ids(folder);
    Loaded m(folder);
    const Checkpoint empty = m.session.checkpoint();
    const auto want = run_ids(m.session, ids, cut_every(ids.size(), 64));
    m.session.restore(empty);
    CHECK(run_ids(m.session, ids, cut_every(ids.size(), 64)) == want);
}

TEST_CASE("session: a checkpoint whose cache rows were overwritten is refused") {
    const std::string folder = data_path(kModels[0]);
    const auto ids = long_ids(folder);
    Loaded m(folder);
    run_ids(m.session, ids, cut_every(10, 10));
    const Checkpoint ten = m.session.checkpoint();
    run_ids(m.session, std::span(ids).subspan(10), cut_every(10, 10));
    const Checkpoint twenty = m.session.checkpoint();

    m.session.restore(ten);
    m.session.restore(twenty);  // rows 10 .. 19 are still those of `twenty`
    m.session.restore(ten);
    m.session.forward(std::span(ids).subspan(30, 4), {});
    CHECK_THROWS_WITH_AS(m.session.restore(twenty), doctest::Contains("20 tokens"), Error);
    CHECK_NOTHROW(m.session.restore(ten));
}

TEST_CASE("session: f16 and q8 caches move logits by no more than twice their precision") {
    // The step of the format relative to the largest value of a block, times the largest logit.
    const struct {
        const char* kv;
        float step;
    } cases[] = {{"f16", 0x1p-11f}, {"q8", 1.0f / 254}};
    for (const std::string& name : kModels)
        for (const auto& c : cases) {
            CAPTURE(name);
            CAPTURE(c.kv);
            const std::string folder = data_path(name);
            const auto ids = long_ids(folder);
            Setup setup;
            Loaded exact(folder, setup);
            setup.kv = c.kv;
            Loaded packed(folder, setup);
            const auto sizes = cut_every(ids.size(), 64);
            const auto want = run_ids(exact.session, ids, sizes);
            const float worst = worst_difference(run_ids(packed.session, ids, sizes), want);
            const float largest = *std::ranges::max_element(want);
            MESSAGE(std::string(c.kv)
                    << ": worst difference " << worst << " of " << 2 * c.step * largest);
            CHECK(worst <= 2 * c.step * largest);
            CHECK(worst > 0);
        }
}

TEST_CASE("session: errors say what was asked and what there is") {
    const std::string folder = data_path(kModels[0]);
    Setup setup;
    setup.max_seq = 10;
    Loaded m(folder, setup);
    const std::vector<int32_t> eleven(11, 1), outside = {256}, negative = {-1};
    CHECK_THROWS_WITH_AS(m.session.forward(eleven, {}), doctest::Contains("11 tokens do not fit"),
                         Error);
    CHECK_THROWS_WITH_AS(m.session.forward(outside, {}), doctest::Contains("256"), Error);
    CHECK_THROWS_WITH_AS(m.session.forward(negative, {}), doctest::Contains("-1"), Error);
    setup.max_seq = 513;
    CHECK_THROWS_WITH_AS(Loaded(folder, setup), doctest::Contains("1 to 512"), Error);
}

TEST_CASE("session: everything that a session and a model took is given back") {
    const std::string folder = data_path(kModels[0]);
    HostDevice device({2, cpu::Level::scalar, cpu::Activations::f32});
    {
        const Model model =
            load_model(std::make_shared<ModelFile>(open_model_file(folder, {})), device, {}, {});
        const Session session(model, device, {64, kv_type_by_name("f16"), 1});
        CHECK(device.in_use().all_buffers() > 2);
    }
    CHECK(device.in_use().all_buffers() == 0);
}
