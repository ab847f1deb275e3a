// Partial offload on the host device: whoever multiplies, wherever the weights live, the same bits.
#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "libcore/ops/run_steps.h"
#include "tests/support/data.h"
#include "tests/support/place_by_hand.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;

namespace {

std::vector<std::string> fixture_models() {
    std::vector<std::string> folders;
    for (const auto& entry : std::filesystem::directory_iterator(data_path("models")))
        if (entry.is_directory()) folders.push_back(entry.path().string());
    std::ranges::sort(folders);
    REQUIRE(folders.size() == 5);
    return folders;
}

/// Every lane reads only what it was sent: all else is NaN.
Setup poisoned(const HandPlacement& spill = {}) {
    Setup setup;
    setup.max_seq = 128;
    setup.threads = 1;
    setup.lanes.poison_stale = true;
    setup.place = [spill](ModelPlan& plan) { place(plan, spill); };
    return setup;
}

/// Logits of a pass of every class: a prompt, the few tokens behind it, and an answer.
std::vector<float> all_classes(Session& session, const std::string& folder) {
    const auto ids = read_values<int32_t>(folder + "/long_input_ids.i32");
    const std::vector<uint32_t> sizes = {20, 7, 1};
    auto logits = run_ids(session, ids, sizes);
    const std::span<const float> last = std::span(logits).last(session.model().config.vocab);
    for (const int32_t id : greedy(session, argmax(last), 4)) logits.push_back(float(id));
    return logits;
}

uint32_t layers_of(const std::string& folder) {
    const auto file = std::make_shared<ModelFile>(open_model_file(folder, {}));
    return plan_model(file, {}).config.n_layers;
}

}  // namespace

TEST_CASE("offload: any budget, exec and kind of spill gives the bits of the resident model") {
    for (const std::string& folder : fixture_models()) {
        Loaded resident(folder, poisoned());
        const auto want = all_classes(resident.session, folder);
        CHECK(std::ranges::all_of(want, [](float v) { return std::isfinite(v); }));
        CHECK(resident.session.counts().crossings == 0);
        for (const Exec exec : {Exec::device, Exec::cpu, Exec::split})
            for (const bool ffn_only : {false, true})
                for (uint32_t layers = 0; layers <= layers_of(folder); ++layers) {
                    const HandPlacement spill = {.layers = layers,
                                                 .exec = exec,
                                                 .ffn_only = ffn_only,
                                                 .host_embedding = layers % 2 == 1};
                    CAPTURE(folder);
                    CAPTURE(text(spill));
                    Loaded m(folder, poisoned(spill));
                    CHECK(all_classes(m.session, folder) == want);
                }
    }
}

TEST_CASE("offload: crossings of a token, by mode") {
    // S spilled layers; the embedding's row comes from the host, or from the device with the head.
    // A CPU layer goes up to its state and comes down from it; from the first one the stream need
    // not come down when it began there. A cut layer has four windows, a feed-forward two.
    const struct {
        Exec exec;
        bool ffn_only;
        int per_layer, host_up, host_down, device_up, device_down;
    } modes[] = {
        {Exec::device, false, 0, 1, 0, 0, 0}, {Exec::device, true, 0, 1, 0, 0, 0},
        {Exec::cpu, false, 1, 1, 0, 1, 1},    {Exec::cpu, true, 1, 1, 0, 0, 0},
        {Exec::split, false, 4, 1, -1, 0, 0}, {Exec::split, true, 2, 1, 0, 0, 0},
    };
    for (const std::string& folder : fixture_models())
        for (const auto& mode : modes)
            for (const bool host_embedding : {false, true})
                for (uint32_t layers = 1; layers <= layers_of(folder); ++layers) {
                    const HandPlacement spill = {.layers = layers,
                                                 .exec = mode.exec,
                                                 .ffn_only = mode.ffn_only,
                                                 .host_embedding = host_embedding};
                    CAPTURE(folder);
                    CAPTURE(text(spill));
                    Loaded m(folder, poisoned(spill));
                    const bool from_host = host_embedding && !m.model.config.tied_embeddings;
                    const int all = mode.per_layer * int(layers);
                    const SegmentPlan& plan = m.session.plan(TokenClass::one);
                    int up = 0, down = 0;
                    for (const Segment& s : plan.segments)
                        up += !s.up.empty(), down += !s.down.empty();
                    CHECK(up == all + (from_host ? mode.host_up : mode.device_up));
                    CHECK(down == all + (from_host ? mode.host_down : mode.device_down));

                    const int32_t id = 1;
                    const uint32_t row = 0;
                    m.session.forward({&id, 1}, {&row, 1});
                    const LaneCounts& done = m.session.counts();
                    CHECK(done.crossings == plan.crossings());
                    CHECK(done.bytes_up + done.bytes_down == plan.bytes_copied(1, 1));
                }
}

TEST_CASE("offload: prompts read spilled weights over the link, others where exec says") {
    const std::string folder = data_path("models/tiny_qwen35_a");
    for (const Residency residency : {Residency::host_mapped, Residency::host_plain}) {
        const HandPlacement spill = {.layers = 3, .exec = Exec::cpu, .residency = residency};
        Loaded m(folder, poisoned(spill));
        CHECK(m.session.plan(TokenClass::one).has_steps_on(Lane::cpu));
        CHECK(m.session.plan(TokenClass::few).has_steps_on(Lane::cpu));
        CHECK(m.session.plan(TokenClass::prompt).has_steps_on(Lane::cpu) ==
              (residency == Residency::host_plain));
    }
    for (const uint32_t tokens : {1u, 2u, 8u, 9u, 64u})
        for (const uint32_t from : {2u, 9u, 65u}) {
            CAPTURE(tokens);
            CAPTURE(from);
            CHECK((class_of(tokens, from) == TokenClass::prompt) == (tokens >= from));
        }
}

namespace {

/// The halves of a window meet: none goes on before the other has begun. Each looks at what it
/// wrote, on its own thread and in its own arena.
struct Meeting : StepWatch {
    using Clock = std::chrono::steady_clock;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Clock::time_point> begun[kLanes], ended[kLanes];
    std::set<std::thread::id> threads[kLanes];
    bool have_met = true, rows_are_own = true;

    static bool is_cut(const Step& s) {
        return is_product(s.op) && s.params.row_end - s.params.row_begin != s.w->shape.rows;
    }

    void begins(std::span<const Step> steps, const Tokens& t) override {
        if (std::ranges::none_of(steps, is_cut)) return;
        for (const Step& s : steps)
            if (s.op == Op::gemv) std::fill_n(t.row(s.out[0], 0), t.count * s.out[0].width, NAN);
        std::unique_lock lock(mutex);
        const size_t lane = size_t(t.lane);
        begun[lane].push_back(Clock::now());
        threads[lane].insert(std::this_thread::get_id());
        changed.notify_all();
        have_met &= changed.wait_for(lock, std::chrono::seconds(60),
                                     [&] { return begun[1 - lane].size() >= begun[lane].size(); });
    }

    void ends(std::span<const Step> steps, const Tokens& t) override {
        if (std::ranges::none_of(steps, is_cut)) return;
        const std::lock_guard lock(mutex);
        ended[size_t(t.lane)].push_back(Clock::now());
        for (const Step& s : steps)
            for (uint32_t i = 0; i < t.count * s.out[0].width; ++i) {
                const uint32_t row = i % s.out[0].width;
                const bool is_own = s.params.row_begin <= row && row < s.params.row_end;
                rows_are_own &= is_own == !std::isnan(t.row(s.out[0], 0)[i]);
            }
    }
};

}  // namespace

TEST_CASE("offload: both halves of a cut product run at once, and each writes its own rows") {
    for (const std::string& folder : fixture_models()) {
        CAPTURE(folder);
        const uint32_t layers = layers_of(folder);
        Meeting meeting;
        Setup setup = poisoned({.layers = layers, .exec = Exec::split});
        setup.threads = 2;
        setup.lanes.watch = &meeting;
        Loaded m(folder, setup);
        for (const uint32_t tokens : {1u, 3u}) {
            const std::vector<int32_t> ids = {1, 2, 3};
            m.session.forward(std::span(ids).first(tokens), {});
        }
        CHECK(meeting.have_met);
        CHECK(meeting.rows_are_own);
        for (size_t lane = 0; lane < kLanes; ++lane) {
            CHECK(meeting.begun[lane].size() == 2 * 4 * layers);
            CHECK(meeting.threads[lane].size() == 1);
        }
        CHECK(meeting.threads[0] != meeting.threads[1]);
        for (size_t i = 0; i < meeting.begun[0].size(); ++i) {
            const auto begun = std::max(meeting.begun[0][i], meeting.begun[1][i]);
            const auto ended = std::min(meeting.ended[0][i], meeting.ended[1][i]);
            CHECK(begun <= ended);
        }
    }
}

TEST_CASE("offload: without any one of its copies a plan gives other logits, or none") {
    for (const std::string& folder : fixture_models())
        for (const Exec exec : {Exec::cpu, Exec::split})
            for (const uint32_t tokens : {1u, 3u}) {
                const HandPlacement spill = {.layers = 2, .exec = exec, .host_embedding = true};
                CAPTURE(folder);
                CAPTURE(text(spill));
                const std::vector<int32_t> ids = {5, 7, 11};
                size_t at = 0, without = SIZE_MAX;  // counted over the copies of a plan
                Setup setup = poisoned(spill);
                setup.planner = [&](std::span<const Step> steps, TokenClass c) {
                    SegmentPlan plan = plan_segments(steps, c);
                    if (c != class_of(tokens, setup.prompt_from)) return plan;
                    at = 0;
                    for (Segment& s : plan.segments)
                        for (auto* copies : {&s.up, &s.down})
                            std::erase_if(*copies,
                                          [&](const SlotCopy&) { return at++ == without; });
                    return plan;
                };
                HostDevice device({1, setup.level, cpu::Activations::f32});
                const Model model = setup.model(folder, device);
                const auto logits = [&] {
                    Session session(model, device, setup.session());
                    return run_ids(session, std::span(ids).first(tokens), {&tokens, 1});
                };
                const auto want = logits();
                const size_t copies = at;
                CHECK(copies > 8);
                for (without = 0; without < copies; ++without) {
                    CAPTURE(without);
                    const auto got = logits();
                    CHECK(got != want);
                }
            }
}
