// What two lanes do beside computing: captures, counts, lines, and refusing what is not theirs.
#include <doctest/doctest.h>

#include <bit>
#include <deque>
#include <map>
#include <sstream>

#include "tests/support/data.h"
#include "tests/support/death.h"
#include "tests/support/place_by_hand.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;

namespace {

const char* const kGivenUp = "cpu exec: hipGraph capture disabled (CPU-executed steps present)";

/// The host device, counting what it records and repeats.
struct CountingDevice : HostDevice {
    uint32_t recorded = 0, repeated = 0;

    CountingDevice() : HostDevice({1, cpu::detect_level(), cpu::Activations::f32}) {}
    std::unique_ptr<Capture> capture(std::span<const Step> steps, const Tokens& t) override {
        ++recorded;
        return HostDevice::capture(steps, t);
    }
    void replay(const Capture& capture, const Tokens& t) override {
        ++repeated;
        HostDevice::replay(capture, t);
    }
};

/// A spilled model on a device of its own, with the lines that were written.
struct Spilled {
    std::vector<std::string> lines;
    CountingDevice device;
    Model model;
    std::optional<Session> session;

    explicit Spilled(const HandPlacement& spill, LaneOptions lanes = {},
                     const std::string& folder = data_path("models/tiny_qwen2")) {
        Setup setup;
        setup.max_seq = 64;
        setup.place = [&](ModelPlan& plan) { place(plan, spill); };
        model = setup.model(folder, device);
        lanes.log.sink = [this](LogLevel, std::string_view line) { lines.emplace_back(line); };
        lanes.log.most = LogLevel::debug;
        setup.lanes = lanes;
        session.emplace(model, device, setup.session());
    }

    /// A prompt of three tokens and four more, one by one.
    std::vector<float> answer() {
        const std::vector<int32_t> ids = {1, 2, 3, 4, 5, 6, 7};
        return run_ids(*session, ids, std::vector<uint32_t>{3, 1, 1, 1, 1});
    }
    std::vector<std::string> lines_with(std::string_view start) const {
        std::vector<std::string> found;
        for (const std::string& line : lines)
            if (line.starts_with(start)) found.push_back(line);
        return found;
    }
};

HandPlacement two_layers(Exec exec, bool host_embedding = false) {
    return {.layers = 2, .exec = exec, .host_embedding = host_embedding};
}

size_t device_only(const SegmentPlan& plan) {
    return size_t(std::ranges::count_if(plan.segments, [](const Segment& s) {
        return s.on(Lane::cpu).empty() && !s.on(Lane::device).empty();
    }));
}

/// "key=value key=value"
std::map<std::string, std::string> fields(const std::string& line) {
    std::map<std::string, std::string> found;
    std::istringstream words(line);
    for (std::string word; words >> word;)
        if (const size_t at = word.find('='); at != std::string::npos)
            found[word.substr(0, at)] = word.substr(at + 1);
    return found;
}

}  // namespace

TEST_CASE("capture: a token of the device's steps whole, beside the CPU the segments without it") {
    for (const Exec exec : {Exec::device, Exec::cpu, Exec::split})
        for (const bool host_embedding : {false, true}) {
            const HandPlacement spill = two_layers(exec, host_embedding);
            CAPTURE(text(spill));
            Spilled captured(spill), plain(spill, {.capture = false});
            CHECK(captured.answer() == plain.answer());
            CHECK(plain.session->gate().report().mode == CaptureMode::off);
            CHECK(plain.device.recorded == 0);

            const CaptureGate& gate = captured.session->gate();
            const SegmentPlan& plan = captured.session->plan(TokenClass::one);
            CHECK(gate.report().mode ==
                  (exec == Exec::device ? CaptureMode::token : CaptureMode::segments));
            CHECK(gate.captures() == device_only(plan));
            CHECK(captured.device.recorded == device_only(plan));
            // behind the prompt nothing is left to make real, behind each further token that one is
            CHECK(captured.device.repeated == 3 * device_only(plan));
            if (exec == Exec::device) CHECK(device_only(plan) == 1);
        }
}

TEST_CASE("capture: a range with a step of the CPU is refused, whatever else is in it") {
    size_t refused = 0;
    for (const Exec exec : {Exec::cpu, Exec::split}) {
        Spilled m(two_layers(exec));
        CaptureGate gate(m.device, m.session->plan(TokenClass::one), {}, {});
        for (const Segment& s : m.session->plan(TokenClass::one).segments)
            if (!s.on(Lane::cpu).empty()) {
                CHECK_THROWS_WITH_AS(gate.capture(s, {}), doctest::Contains("refused"), Error);
                ++refused;
            }
        CHECK(m.device.recorded == 0);
    }
    CHECK(refused > 8);
}

TEST_CASE("capture: to force it with steps of the CPU is refused, to give it up is said once") {
    for (const Exec exec : {Exec::device, Exec::cpu, Exec::split})
        for (const std::optional<bool> wanted : {std::optional<bool>(), {true}, {false}}) {
            const HandPlacement spill = two_layers(exec, true);
            CAPTURE(text(spill));
            const LaneOptions lanes = {.capture = wanted};
            if (wanted == true && exec != Exec::device) {
                CHECK_THROWS_WITH_AS(Spilled(spill, lanes),
                                     doctest::Contains("experimental.graph.forward"), Error);
                continue;
            }
            Spilled m(spill, lanes);
            m.answer();
            CHECK(m.lines_with(kGivenUp).size() == (exec != Exec::device && !wanted));
            CHECK(!m.session->gate().report().reason.empty());
        }
}

TEST_CASE("counts: products of a token by who computes them, 62 for eight layers of three to one") {
    for (const Exec exec : {Exec::device, Exec::cpu, Exec::split}) {
        Spilled m({.layers = 8, .exec = exec}, {}, demo_model_path());
        const int32_t id = 1;
        const uint32_t row = 0;
        for (uint64_t tokens = 1; tokens <= 3; ++tokens) {
            m.session->forward({&id, 1}, {&row, 1});
            CHECK(m.session->counts().cpu_products == (exec == Exec::device ? 0 : 62 * tokens));
            CHECK(m.session->counts().link_products == (exec == Exec::device ? 62 * tokens : 0));
        }
    }
}

TEST_CASE("counts: a spilled matrix that the CPU cannot multiply is read over the link") {
    HostDevice device({1, cpu::detect_level(), cpu::Activations::f32});
    Setup setup;
    setup.max_seq = 64;
    setup.place = [](ModelPlan& plan) {
        place(plan, two_layers(Exec::cpu));
        for (const PlannedWeight& p : plan.weights)
            if (p.source.row->role == Role::ffn_down) p.weight->exec = Exec::device;
    };
    const Model model = setup.model(data_path("models/tiny_qwen2"), device);
    Session session(model, device, setup.session());
    const int32_t id = 1;
    const uint32_t row = 0;
    session.forward({&id, 1}, {&row, 1});
    CHECK(session.counts().cpu_products == 2 * 6);
    CHECK(session.counts().link_products == 2);
}

TEST_CASE("trace: a line per shape at each power of two, and one per border; none unless asked") {
    for (const Exec exec : {Exec::cpu, Exec::split}) {
        Spilled silent(two_layers(exec));
        const auto answer = silent.answer();
        CHECK(silent.lines_with("cpu exec: step").empty());

        StepProfile profile;
        Spilled m(two_layers(exec), {.trace_cpu = true, .cpu_timer = &profile});
        CHECK(m.answer() == answer);

        // how often each shape was multiplied, by the plans: three tokens at once, then four passes
        std::map<std::string, uint64_t> want;
        size_t cpu_steps = 0;
        for (const TokenClass c : {TokenClass::one, TokenClass::few})
            for (const Segment& segment : m.session->plan(c).segments)
                for (const Step& s : segment.on(Lane::cpu)) {
                    const uint64_t passes = c == TokenClass::one ? 4 : 1;
                    cpu_steps += passes;
                    if (!is_product(s.op)) continue;
                    std::ostringstream key;
                    key << s.w->shape.rows << ' ' << s.w->shape.cols << ' '
                        << s.params.row_end - s.params.row_begin << ' '
                        << (s.op == Op::gemv_residual) << ' '
                        << (c == TokenClass::one ? "one" : "several");
                    want[key.str()] += passes;
                }
        std::map<std::string, uint64_t> got;
        for (const std::string& line : m.lines_with("cpu exec: step op=gemv")) {
            auto f = fields(line);
            CAPTURE(line);
            const uint64_t calls = std::stoull(f["calls"]);
            uint64_t& last = got[f["m"] + ' ' + f["k"] + ' ' + f["rows"] + ' ' + f["residual"] +
                                 ' ' + f["tokens"]];
            CHECK(calls == (last == 0 ? 1 : 2 * last));
            last = calls;
            CHECK(f["quant"] == "bf16");
            CHECK(f["rotated"] == "0");
            CHECK(f["awq"] == "0");
            CHECK(f["link_products"] == "0");
            CHECK(std::stod(f["gemv_ms"]) >= 0);
        }
        for (auto& [key, calls] : want) calls = std::bit_floor(calls);
        CHECK(got == want);

        size_t borders = 0;
        for (const Segment& s : m.session->plan(TokenClass::one).segments)
            borders += !s.up.empty() || !s.down.empty();
        const auto lines = m.lines_with("cpu exec: border class=one");
        CHECK(lines.size() == 3 * borders);  // calls 1, 2, 4
        for (const std::string& line : lines) {
            auto f = fields(line);
            const Segment& s =
                m.session->plan(TokenClass::one).segments.at(std::stoull(f["segment"]));
            uint64_t up = 0, down = 0;
            for (const SlotCopy& c : s.up) up += c.bytes(1);
            for (const SlotCopy& c : s.down) down += c.bytes(1);
            CHECK(std::stoull(f["bytes_up"]) == up);
            CHECK(std::stoull(f["bytes_down"]) == down);
        }

        size_t timed = 0;
        for (const StepTimes& row : profile.rows) {
            CHECK(row.lane == Lane::cpu);
            timed += row.calls;
        }
        CHECK(timed == cpu_steps);
    }
}

TEST_CASE("lanes: a step that reads from the wrong side ends the process") {
    const auto run_with = [](const std::function<void(Step&)>& change, Lane lane) {
        return is_aborted([&] {
            Setup setup;
            setup.max_seq = 64;
            setup.place = [](ModelPlan& p) { place(p, {.layers = 1, .exec = Exec::cpu}); };
            setup.planner = [&](std::span<const Step> steps, TokenClass c) {
                SegmentPlan plan = plan_segments(steps, c);
                for (Segment& s : plan.segments)
                    for (Step& step : s.steps[size_t(lane)]) change(step);
                return plan;
            };
            HostDevice device({1, cpu::detect_level(), cpu::Activations::f32});
            const Model model = setup.model(data_path("models/tiny_qwen2"), device);
            Session session(model, device, setup.session());
            const int32_t id = 1;
            session.forward({&id, 1}, {});
        });
    };
    static std::deque<Weight> foreign;  // where the other lane's are
    const auto use_foreign = [](Op op, Residency residency) {
        return [=](Step& step) {
            if (step.op != op) return;
            Weight& w = foreign.emplace_back();
            w.codec = step.w->codec;
            w.shape = step.w->shape;
            w.data.buffer = Buffer::view({step.w->data.buffer.data(), step.w->bytes()}, residency);
            step.w = &w;
        };
    };
    CHECK(!run_with([](Step&) {}, Lane::cpu));
    CHECK(!run_with(use_foreign(Op::gemv, Residency::host_mapped), Lane::cpu));
    CHECK(!run_with(use_foreign(Op::gemv, Residency::host_mapped), Lane::device));
    for (const Op op : {Op::gemv, Op::gemv_residual, Op::rmsnorm})
        CHECK(run_with(use_foreign(op, Residency::device), Lane::cpu));
    for (const Op op : {Op::gemv, Op::gemv_residual, Op::rmsnorm})
        CHECK(run_with(use_foreign(op, Residency::host_plain), Lane::device));
}
