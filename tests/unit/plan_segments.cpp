// The pass that cuts a list of steps between two lanes: against every other way to cut it, and
// executed on numbers that tell where they come from.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <tuple>

#include "libcore/ops/ops_table.h"
#include "libcore/plan/segments.h"

using namespace hf;

namespace {

/// Steps over a few slots, without regard to what they would compute.
struct RandomList {
    std::deque<Weight> weights;
    std::vector<Slot> slots;
    std::vector<Step> steps;

    std::mt19937 draw;
    uint32_t below(uint32_t n) { return uint32_t(draw() % n); }
    Slot any() { return slots[below(uint32_t(slots.size()))]; }

    RandomList(uint32_t seed, uint32_t count) : draw(seed) {
        for (uint16_t id = 0; id < 3 + below(4); ++id)
            slots.push_back({id, below(8) ? Rows::tokens : Rows::logits, 16 * (1 + below(5))});
        for (uint32_t i = 0; i < count; ++i) add_step(i);
    }

    void add_step(uint32_t i) {
        constexpr Op kOps[] = {Op::gemv, Op::gemv,     Op::gemv_residual, Op::embed,    Op::rmsnorm,
                               Op::rope, Op::silu_mul, Op::copy,          Op::kv_write, Op::attend};
        Step s;
        s.op = kOps[below(uint32_t(std::size(kOps)))];
        s.layer = i;  // its name
        s.w = &weight(s);
        if (s.op != Op::embed) s.in[0] = any();
        if (s.op == Op::silu_mul || s.op == Op::kv_write) s.in[1] = any();
        if (s.op != Op::kv_write) s.out[0] = s.op == Op::rope ? s.in[0] : any();
        while (s.op == Op::gemv_residual && s.out[0] == s.in[0]) s.out[0] = any();
        if (s.op == Op::gemv_residual) s.in[1] = s.out[0];
        if (is_product(s.op)) {
            weights.back().shape = {s.out[0].width, s.in[0].width};
            weights.back().split_row = 8 * (1 + below(s.out[0].width / 8 - 1));
            s.params.row_end = s.out[0].width;
        }
        steps.push_back(s);
    }

    const Weight& weight(const Step& s) {
        Weight& w = weights.emplace_back();
        w.residency = Residency::host_mapped;
        w.is_mirrored = below(6) > 0;
        if (row_of(s.op).place == Place::weight) w.exec = Exec(below(s.op == Op::embed ? 2 : 3));
        return w;
    }
};

// Every way to cut a list. ---------------------------------------------------------------------

/// One step, or a window.
using Unit = std::vector<Step>;

bool reads(const Step& s, Slot slot) {
    return std::ranges::find(s.in, slot) != std::end(s.in);
}

std::vector<Unit> units_of(const std::vector<Step>& steps) {
    std::vector<Unit> units;
    for (size_t i = 0; i < steps.size();) {
        Unit window;
        for (size_t j = i; j < steps.size() && is_product(steps[j].op); ++j) {
            const Step& s = steps[j];
            bool fits = s.w->exec != Exec::device;
            for (const Step& other : window)
                if (reads(s, other.out[0]) || reads(other, s.out[0]) || s.out[0] == other.out[0])
                    fits = false;
            if (!fits) break;
            window.push_back(s);
        }
        bool is_cut = false;
        for (const Step& s : window) is_cut |= s.w->exec == Exec::split;
        units.push_back(is_cut ? window : Unit{steps[i]});
        i += units.back().size();
    }
    return units;
}

/// Crossings, bytes, segments, floating steps on the CPU.
using Cost = std::tuple<uint32_t, uint64_t, uint32_t, uint32_t>;

/// What a choice of lanes costs: each value that is read on the side where it was not made must
/// cross at one of the borders between; the fewest borders that serve all are found from the left.
struct Bill {
    struct Value {
        size_t segment;
        bool at[kLanes];
        uint64_t cut = UINT64_MAX;  // from here on the CPU has the columns that it made itself
    };
    struct Crossing {
        size_t last, first;  // borders in front of these segments
    };
    std::map<uint16_t, Value> values;
    std::vector<Crossing> wanted[kLanes];
    uint64_t bytes = 0;
    size_t segments = 0;
    uint32_t with_steps = 0, cpu_steps = 0;
    std::optional<size_t> lane;  // of the open segment

    void read(size_t to, Slot slot, uint64_t columns) {
        const auto found = values.find(slot.id);
        if (found == values.end() || found->second.at[to]) return;
        found->second.at[to] = true;
        wanted[to].push_back({segments, found->second.segment + 1});
        bytes += columns * sizeof(float);
    }
    void write(size_t on, Slot slot) { values[slot.id] = {segments, {on == 0, on == 1}}; }

    void add(const Step& s, size_t on) {
        if (lane != on) segments += 1, with_steps += 1;
        lane = on;
        for (const Slot& slot : s.in)
            if (slot.exists()) read(on, slot, slot.width);
        if (s.op == Op::copy) read(on, s.out[0], s.out[0].width);
        if (s.out[0].exists()) write(on, s.out[0]);
        cpu_steps += on == 0 && row_of(s.op).place == Place::floating;
    }

    void add_window(const Unit& window) {
        segments += 1, with_steps += 1;
        for (const Step& s : window) {
            const bool is_cut = s.w->exec == Exec::split;
            const uint64_t rows = s.out[0].width, cut = is_cut ? s.w->split_row : 0;
            read(0, s.in[0], s.in[0].width);
            if (is_cut) read(1, s.in[0], s.in[0].width);
            if (s.op == Op::gemv_residual) {
                if (!values.contains(s.out[0].id) || values[s.out[0].id].cut > cut)
                    read(0, s.out[0], rows - cut);
                if (is_cut) read(1, s.out[0], cut);
            }
        }
        for (const Step& s : window) {
            const bool is_cut = s.w->exec == Exec::split;
            write(is_cut, s.out[0]);
            if (!is_cut) continue;
            values[s.out[0].id].cut = s.w->split_row;
            bytes += (s.out[0].width - s.w->split_row) * sizeof(float);
        }
        wanted[1].push_back({segments + 1, segments + 1});
        lane.reset();
    }

    Cost cost() {
        uint32_t crossings = 0;
        for (auto& list : wanted) {
            std::ranges::sort(list, {}, &Crossing::last);
            size_t border = 0;
            for (const Crossing& c : list)
                if (border < c.first) border = c.last, ++crossings;
        }
        return {crossings, bytes, with_steps, cpu_steps};
    }
};

bool can_run(const Step& s, size_t lane) {
    switch (row_of(s.op).place) {
        case Place::weight:
            return s.w->exec == (lane == 0 ? Exec::cpu : Exec::device);
        case Place::state:
            return lane == 1;
        case Place::floating:
            return lane == 1 || s.w->is_mirrored;
    }
    return false;
}

Cost cheapest(const std::vector<Unit>& units, size_t i, const Bill& so_far) {
    if (i == units.size()) return Bill(so_far).cost();
    Cost best = {UINT32_MAX, 0, 0, 0};
    for (size_t lane = 0; lane < 2; ++lane) {
        Bill bill = so_far;
        if (units[i].size() > 1 || units[i][0].w->exec == Exec::split)
            bill.add_window(units[i]);
        else if (can_run(units[i][0], lane))
            bill.add(units[i][0], lane);
        else
            continue;
        best = std::min(best, cheapest(units, i + 1, bill));
    }
    return best;
}

Cost cost_of(const SegmentPlan& plan) {
    uint32_t segments = 0, cpu_steps = 0;
    for (const Segment& s : plan.segments) {
        segments += !s.on(Lane::cpu).empty() || !s.on(Lane::device).empty();
        for (const Step& step : s.on(Lane::cpu))
            cpu_steps += row_of(step.op).place == Place::floating;
    }
    return {plan.crossings(), plan.bytes_copied(1, 1), segments, cpu_steps};
}

// Execution. -----------------------------------------------------------------------------------

/// Numbers instead of activations: what a step writes depends on all that it read.
struct Machine {
    std::map<uint16_t, std::vector<uint64_t>> arenas[kLanes];
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> results;  // by step and column

    static uint64_t mix(uint64_t a, uint64_t b) {
        return (a ^ (b + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9 + (a >> 31);
    }
    std::vector<uint64_t>& at(size_t lane, Slot slot) {
        auto& columns = arenas[lane][slot.id];
        columns.resize(slot.width, slot.id);
        return columns;
    }
    void run(const Step& s, size_t lane) {
        uint64_t read = s.layer;
        for (const Slot& slot : s.in)
            if (slot.exists() && !(s.op == Op::gemv_residual && slot == s.out[0]))
                for (const uint64_t v : at(lane, slot)) read = mix(read, v);
        if (s.op == Op::copy)
            for (const uint64_t v : at(lane, s.out[0])) read = mix(read, v);
        results[{s.layer, UINT32_MAX}] = read;
        if (!s.out[0].exists()) return;
        auto& out = at(lane, s.out[0]);
        const bool is_part = is_product(s.op);
        const uint32_t end = is_part ? s.params.row_end : s.out[0].width;
        for (uint32_t c = is_part ? s.params.row_begin : 0; c < end; ++c)
            results[{s.layer, c}] = out[c] =
                mix(s.op == Op::gemv_residual ? mix(read, out[c]) : read, c);
    }
    void copy(const SlotCopy& c, size_t to) {
        for (uint32_t i = c.begin; i < c.end; ++i) at(to, c.slot)[i] = at(1 - to, c.slot)[i];
    }
};

/// Runs a plan, leaving out copy number `without`; counts the copies.
Machine execute(const SegmentPlan& plan, size_t& copies, size_t without = SIZE_MAX) {
    Machine m;
    copies = 0;
    for (const Segment& s : plan.segments) {
        for (const SlotCopy& c : s.up)
            if (copies++ != without) m.copy(c, 1);
        for (const SlotCopy& c : s.down)
            if (copies++ != without) m.copy(c, 0);
        for (size_t lane = 0; lane < kLanes; ++lane)
            for (const Step& step : s.steps[lane]) m.run(step, lane);
    }
    return m;
}

/// Whether a step reads any of these columns, or writes any.
bool reads(const Step& s, const SlotCopy& c) {
    if (is_product(s.op) && s.in[0] != c.slot)
        return s.in[1] == c.slot && s.params.row_begin < c.end && c.begin < s.params.row_end;
    return reads(s, c.slot) || (s.op == Op::copy && s.out[0] == c.slot);
}
bool writes(const Step& s, const SlotCopy& c) {
    const bool is_beside =
        is_product(s.op) && (s.params.row_end <= c.begin || c.end <= s.params.row_begin);
    return s.out[0] == c.slot && !is_beside;
}

/// By copy, in the order of execute(): whether the side that receives it reads it before it is
/// written again, or it stays to the end. Only what a window cut goes up in any case.
std::vector<bool> is_wanted(const SegmentPlan& plan) {
    std::vector<bool> wanted;
    const auto is_read = [&](size_t segment, const SlotCopy& c, size_t to) {
        for (; segment < plan.segments.size(); ++segment)
            for (size_t lane = 0; lane < kLanes; ++lane)
                for (const Step& s : plan.segments[segment].steps[lane]) {
                    if (lane == to && reads(s, c)) return true;
                    if (writes(s, c)) return false;
                }
        return true;
    };
    for (size_t i = 0; i < plan.segments.size(); ++i) {
        for (const SlotCopy& c : plan.segments[i].up) wanted.push_back(is_read(i, c, 1));
        for (const SlotCopy& c : plan.segments[i].down) wanted.push_back(is_read(i, c, 0));
    }
    return wanted;
}

Machine execute(const std::vector<Step>& steps) {
    Machine m;
    for (const Step& s : steps) m.run(s, 0);
    return m;
}

}  // namespace

TEST_CASE("plan_segments: no other choice of lanes and borders is cheaper, for 4000 random lists") {
    size_t windows = 0, crossings = 0;
    for (uint32_t seed = 0; seed < 4000; ++seed) {
        CAPTURE(seed);
        const RandomList list(seed, 1 + seed % 12);
        const SegmentPlan plan = plan_segments(list.steps, TokenClass::one);
        const Cost best = cheapest(units_of(list.steps), 0, {});
        REQUIRE(cost_of(plan) == best);
        crossings += plan.crossings();
        for (const Segment& s : plan.segments) windows += s.is_window();
    }
    CHECK(windows > 1000);
    CHECK(crossings > 4000);
}

TEST_CASE("plan_segments: every step reads what the list as a whole would have made") {
    for (uint32_t seed = 0; seed < 2000; ++seed) {
        CAPTURE(seed);
        const RandomList list(seed, 1 + seed % 40);
        const SegmentPlan plan = plan_segments(list.steps, TokenClass::few);
        const Machine want = execute(list.steps);
        size_t copies;
        Machine got = execute(plan, copies);
        for (const auto& [key, value] : want.results) REQUIRE(got.results[key] == value);
        Machine straight = want;
        for (const Step& s : list.steps)
            if (const Slot slot = s.out[0]; slot.exists())
                REQUIRE(got.at(size_t(plan.last_lane(slot)), slot) == straight.at(0, slot));
    }
}

TEST_CASE("plan_segments: without any one of its copies a step reads something else") {
    for (uint32_t seed = 0; seed < 400; ++seed) {
        const RandomList list(seed, 1 + seed % 40);
        const SegmentPlan plan = plan_segments(list.steps, TokenClass::one);
        size_t copies;
        const Machine want = execute(plan, copies);
        const std::vector<bool> wanted = is_wanted(plan);
        REQUIRE(wanted.size() == copies);
        for (size_t i = 0; i < wanted.size(); ++i) {
            if (!wanted[i]) continue;
            CAPTURE(seed);
            CAPTURE(i);
            const Machine got = execute(plan, copies, i);
            const bool is_same = got.results == want.results && got.arenas[1] == want.arenas[1];
            CHECK(!is_same);
        }
    }
}
