#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/plan/choose_lanes.h"
#include "libcore/plan/segments.h"

namespace hf {
namespace {

struct ClassRow {
    std::string_view name;
    uint32_t tokens;  // of a typical pass, where plans are otherwise equal
};
constexpr ClassRow kClasses[kTokenClasses] = {{"one", 1}, {"few", 4}, {"prompt", 64}};

/// Where a slot's present value is.
struct Presence {
    bool at[kLanes] = {true, true};  // what nobody wrote is everywhere
    size_t written = 0;              // in which segment
};

/// Lays units into segments, and copies in front of those.
struct Cutter {
    std::vector<Segment> segments;
    std::vector<Presence> slots;  // by id
    size_t crossed[kLanes] = {};  // by direction: the last segment with copies in front of it

    Presence& presence(Slot slot) {
        if (slots.size() <= slot.id) slots.resize(slot.id + size_t{1});
        return slots[slot.id];
    }

    /// The slot comes along at the last border that was crossed since it was written, if there is
    /// one, else across the border in front of this segment.
    void read(Lane to, const SlotCopy& copy) {
        Presence& p = presence(copy.slot);
        if (p.at[size_t(to)]) return;
        size_t& border = crossed[size_t(to)];
        if (border <= p.written) border = segments.size() - 1;
        HF_ASSERT(border > p.written);
        Segment& behind = segments[border];
        (to == Lane::cpu ? behind.down : behind.up).push_back(copy);
        p.at[size_t(to)] = true;
    }

    void write(Lane on, Slot slot) {
        Presence& p = presence(slot);
        p.at[size_t(on)] = true;
        p.at[1 - size_t(on)] = false;
        p.written = segments.size() - 1;
    }

    /// A new segment, or the one that a window left behind it.
    void open() {
        const bool is_open = !segments.empty() && segments.back().on(Lane::cpu).empty() &&
                             segments.back().on(Lane::device).empty();
        if (!is_open) segments.emplace_back();
    }

    void move(const LaneUnit& unit, Lane on) {
        const size_t lane = size_t(on);
        for (const SlotCopy& copy : unit.reads[lane]) read(on, copy);
        std::ranges::copy(unit.steps[lane], std::back_inserter(segments.back().steps[lane]));
    }

    void add(const LaneUnit& unit, Lane on) {
        const bool goes_on =
            !segments.empty() && !segments.back().is_window() && !segments.back().on(on).empty();
        if (!goes_on) open();
        move(unit, on);
        for (const Slot& slot : unit.writes[size_t(on)]) write(on, slot);
    }

    /// The window, and the segment behind it, which begins with what was cut.
    void add_window(const LaneUnit& unit) {
        open();
        for (const Lane on : {Lane::cpu, Lane::device}) move(unit, on);
        for (const Lane on : {Lane::cpu, Lane::device})
            for (const Slot& slot : unit.writes[size_t(on)]) write(on, slot);
        segments.emplace_back().up = unit.cut_outputs;
        crossed[size_t(Lane::device)] = segments.size() - 1;
    }

    std::vector<Lane> last_lanes() const {
        std::vector<Lane> lanes;
        for (const Presence& p : slots)
            lanes.push_back(p.at[size_t(Lane::device)] ? Lane::device : Lane::cpu);
        return lanes;
    }
};

uint64_t rows(Slot slot, uint64_t tokens, uint64_t logits) {
    return slot.rows == Rows::tokens ? tokens : logits;
}

}  // namespace

std::string_view name_of(TokenClass c) {
    return kClasses[size_t(c)].name;
}

TokenClass class_of(uint32_t tokens, uint32_t prompt_from) {
    if (tokens >= prompt_from) return TokenClass::prompt;
    return tokens > 1 ? TokenClass::few : TokenClass::one;
}

Exec side_of(const Weight& w, TokenClass c) {
    const bool is_prompt = c == TokenClass::prompt && w.residency == Residency::host_mapped;
    return is_prompt ? Exec::device : w.exec;
}

Lane SegmentPlan::last_lane(Slot slot) const {
    return slot.id < last_lanes.size() ? last_lanes[slot.id] : Lane::device;
}

uint32_t SegmentPlan::crossings() const {
    uint32_t n = 0;
    for (const Segment& s : segments) n += !s.up.empty() + !s.down.empty();
    return n;
}

uint64_t SegmentPlan::bytes_copied(uint64_t tokens, uint64_t logits) const {
    uint64_t bytes = 0;
    for (const Segment& s : segments)
        for (const auto& copies : {s.up, s.down})
            for (const SlotCopy& copy : copies)
                bytes += copy.bytes(rows(copy.slot, tokens, logits));
    return bytes;
}

bool SegmentPlan::has_steps_on(Lane lane) const {
    return std::ranges::any_of(segments, [&](const Segment& s) { return !s.on(lane).empty(); });
}

SegmentPlan plan_segments(std::span<const Step> steps, TokenClass token_class) {
    const std::vector<LaneUnit> units = lane_units(steps, token_class);
    const uint32_t tokens = kClasses[size_t(token_class)].tokens;
    const LaneChoice choice = choose_lanes(units, tokens);
    Cutter cutter;
    for (size_t i = 0; i < units.size(); ++i)
        if (units[i].is_window)
            cutter.add_window(units[i]);
        else
            cutter.add(units[i], choice.lanes[i]);
    SegmentPlan plan{token_class, std::move(cutter.segments), cutter.last_lanes()};
    HF_ASSERT(plan.crossings() == choice.cost.crossings);
    HF_ASSERT(plan.bytes_copied(tokens, 1) == choice.cost.bytes);
    return plan;
}

}  // namespace hf
