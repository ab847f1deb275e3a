// A shortest path. What lies behind a unit depends on the past only through where each live slot
// can be read, so that is the state:
//
//   at[lane]   slots that are there
//   can[lane]  slots that can be there without a new crossing: they are there, or they were on the
//              other side when a border was crossed in that direction, and could have come along
//
// A read of a slot that is not in can[] pays for one crossing at the border in front of the segment
// that reads; whatever was on the other side then could have come along. A state is dropped when
// another is as good in everything that counts, or can catch up for two crossings, one each way.
#include "libcore/plan/choose_lanes.h"

#include <algorithm>
#include <bitset>
#include <optional>

#include "libcore/base/error.h"

namespace hf {
namespace {

constexpr size_t kMaxSlots = 256;
using SlotSet = std::bitset<kMaxSlots>;

/// Where the state's last unit ran; nothing before the first.
using Ran = std::optional<Lane>;
constexpr Lane kBoth = Lane(kLanes);

bool contains(const SlotSet& all, const SlotSet& some) {
    return (some & ~all).none();
}

struct LaneState {
    SlotSet at[kLanes], can[kLanes];
    Ran ran;
    LaneCost cost;
    uint32_t parent = 0;  // index among the states before this unit
    Lane lane = Lane::device;

    void read(Lane lane_, const SlotCopy& copy, uint64_t rows) {
        const size_t here = size_t(lane_), there = 1 - here, id = copy.slot.id;
        if (at[here][id]) return;
        if (!can[here][id]) {
            cost.crossings += 1;
            can[here] |= at[there];
        }
        cost.bytes += copy.bytes(rows);
        at[here].set(id);
    }

    void write(Lane lane_, Slot slot) {
        const size_t here = size_t(lane_), there = 1 - here;
        at[here].set(slot.id), can[here].set(slot.id);
        at[there].reset(slot.id), can[there].reset(slot.id);
    }

    /// At least as good as the other, whatever comes.
    bool dominates(const LaneState& other) const {
        if (cost.crossings + 2 < other.cost.crossings) return true;
        for (size_t lane_ = 0; lane_ < kLanes; ++lane_)
            if (!contains(can[lane_], other.can[lane_])) return false;
        if (cost.crossings < other.cost.crossings) return true;
        for (size_t lane_ = 0; lane_ < kLanes; ++lane_)
            if (!contains(at[lane_], other.at[lane_])) return false;
        return ran == other.ran && cost <= other.cost;
    }
};

struct Search {
    uint32_t tokens;

    uint64_t rows(Slot slot) const { return slot.rows == Rows::tokens ? tokens : 1; }

    void run_on(LaneState& s, Lane lane, const LaneUnit& unit) const {
        for (const SlotCopy& read : unit.reads[size_t(lane)]) s.read(lane, read, rows(read.slot));
        for (const Slot& slot : unit.writes[size_t(lane)]) s.write(lane, slot);
        s.cost.segments += s.ran != lane;
        s.cost.cpu_steps += unit.is_floating && lane == Lane::cpu;
        s.ran = s.lane = lane;
    }

    void run_window(LaneState& s, const LaneUnit& unit) const {
        for (size_t lane = 0; lane < kLanes; ++lane)
            for (const SlotCopy& read : unit.reads[lane]) s.read(Lane(lane), read, rows(read.slot));
        for (size_t lane = 0; lane < kLanes; ++lane)
            for (const Slot& slot : unit.writes[lane]) s.write(Lane(lane), slot);
        for (const SlotCopy& up : unit.cut_outputs) s.cost.bytes += up.bytes(rows(up.slot));
        s.cost.crossings += 1;
        s.can[size_t(Lane::device)] |= s.at[size_t(Lane::cpu)];
        s.cost.segments += 1;
        s.ran = kBoth;
    }

    /// All ways to go on from `before`, cheapest first.
    std::vector<LaneState> next(const std::vector<LaneState>& before, const LaneUnit& unit,
                                const SlotSet& live) const {
        std::vector<LaneState> found;
        const auto add = [&](uint32_t parent, auto run) {
            LaneState& s = found.emplace_back(before[parent]);
            s.parent = parent;
            run(s);
            for (size_t lane = 0; lane < kLanes; ++lane) s.at[lane] &= live, s.can[lane] &= live;
        };
        for (uint32_t i = 0; i < before.size(); ++i) {
            if (unit.is_window) add(i, [&](LaneState& s) { run_window(s, unit); });
            for (const Lane lane : {Lane::device, Lane::cpu})
                if (unit.may_run(lane)) add(i, [&](LaneState& s) { run_on(s, lane, unit); });
        }
        std::sort(found.begin(), found.end(),
                  [](const LaneState& a, const LaneState& b) { return a.cost < b.cost; });
        return found;
    }
};

std::vector<LaneState> without_dominated(std::vector<LaneState> states) {
    std::vector<LaneState> kept;
    for (LaneState& s : states)
        if (std::ranges::none_of(kept, [&](const LaneState& k) { return k.dominates(s); }))
            kept.push_back(std::move(s));
    return kept;
}

/// By unit: the slots that somebody behind it reads before they are written again.
std::vector<SlotSet> live_behind(std::span<const LaneUnit> units) {
    std::vector<SlotSet> live(units.size());
    SlotSet now;
    for (size_t i = units.size(); i-- > 0;) {
        live[i] = now;
        for (const auto& writes : units[i].writes)
            for (const Slot& slot : writes) now.reset(slot.id);
        for (const auto& reads : units[i].reads)
            for (const SlotCopy& read : reads) now.set(read.slot.id);
    }
    return live;
}

void check_slots(std::span<const LaneUnit> units) {
    for (const LaneUnit& unit : units)
        for (size_t lane = 0; lane < kLanes; ++lane) {
            for (const SlotCopy& read : unit.reads[lane]) HF_ASSERT(read.slot.id < kMaxSlots);
            for (const Slot& slot : unit.writes[lane]) HF_ASSERT(slot.id < kMaxSlots);
        }
}

}  // namespace

LaneChoice choose_lanes(std::span<const LaneUnit> units, uint32_t tokens) {
    check_slots(units);
    const Search search{tokens};
    const std::vector<SlotSet> live = live_behind(units);
    std::vector<std::vector<LaneState>> states(1, std::vector<LaneState>(1));
    LaneState& start = states[0][0];  // what nobody wrote is everywhere
    for (size_t lane = 0; lane < kLanes; ++lane) start.at[lane].set(), start.can[lane].set();
    for (size_t i = 0; i < units.size(); ++i)
        states.push_back(without_dominated(search.next(states.back(), units[i], live[i])));

    LaneChoice choice{std::vector<Lane>(units.size()), states.back().front().cost};
    uint32_t at = 0;  // the cheapest comes first
    for (size_t i = units.size(); i-- > 0;) {
        choice.lanes[i] = states[i + 1][at].lane;
        at = states[i + 1][at].parent;
    }
    return choice;
}

}  // namespace hf
