#include "libcore/plan/activation_tags.h"

#include <map>
#include <vector>

namespace hf {
namespace {

constexpr uint16_t kNone = 0xffff;

/// What was done to an activation, and to which slot's.
struct Tag {
    Rotation rotation = Rotation::none;
    uint32_t awq_id = 0;
    cpu::Activations activations = cpu::Activations::f32;
    cpu::Prepare layout = {};  // of integers
    uint16_t from = kNone;     // of an activation as it is: none
    bool is_stale = false;     // `from` has been written since
};

/// Whether a product's input is what its weight expects.
bool fits(const Tag& tag, const Step& product) {
    const Weight& w = *product.w;
    const bool is_rotated = w.codec->rotation != Rotation::none;
    const bool is_integer = product.params.activations != cpu::Activations::f32;
    return !tag.is_stale && tag.rotation == w.codec->rotation &&
           tag.awq_id == (is_rotated ? w.awq_id : 0) &&
           tag.activations == product.params.activations &&
           (!is_integer || tag.layout == w.codec->cpu.prepare);
}

/// The tag of what a step writes.
Tag tag_of(const Step& step, const Tag& in) {
    Tag tag;
    if (step.op == Op::rotate) {
        tag.rotation = step.w->codec->rotation;
        tag.awq_id = step.w->awq_id;
        tag.from = step.in[0].id;
    } else if (step.op == Op::prepare) {
        tag = in;
        tag.activations = step.params.activations;
        tag.layout = step.w->codec->cpu.prepare;
        if (tag.from == kNone) tag.from = step.in[0].id;
    }
    return tag;
}

/// Whether what a step reads may be read by it.
bool may_read(const Step& step, const Tag& in) {
    if (is_product(step.op)) return fits(in, step);
    if (step.op == Op::rotate) return in.from == kNone;
    if (step.op == Op::prepare) return !in.is_stale && in.activations == cpu::Activations::f32;
    return true;
}

struct Tags {
    std::map<uint16_t, Tag> by_slot[kLanes];

    Tag of(Lane lane, Slot slot) const {
        const auto& tags = by_slot[size_t(lane)];
        const auto found = tags.find(slot.id);
        return found == tags.end() ? Tag{} : found->second;
    }
    void copy(Lane to, const std::vector<SlotCopy>& copies) {
        const Lane from = to == Lane::cpu ? Lane::device : Lane::cpu;
        for (const SlotCopy& c : copies) by_slot[size_t(to)][c.slot.id] = of(from, c.slot);
    }
    void write(Lane lane, Slot out, const Tag& tag) {
        for (auto& tags : by_slot)
            for (auto& [id, t] : tags) t.is_stale |= t.from == out.id;
        by_slot[size_t(lane)][out.id] = tag;
    }
    /// Whether the step's input fits; then takes note of what it writes.
    bool run(Lane lane, const Step& step) {
        const Tag in = step.in[0].exists() ? of(lane, step.in[0]) : Tag{};
        if (!may_read(step, in)) return false;
        const Tag tag = tag_of(step, in);
        for (const Slot& out : step.out)
            if (out.exists()) write(lane, out, tag);
        return true;
    }
};

}  // namespace

const Step* find_unfit_step(const SegmentPlan& plan) {
    Tags tags;
    for (const Segment& segment : plan.segments) {
        tags.copy(Lane::device, segment.up);
        tags.copy(Lane::cpu, segment.down);
        for (const Lane lane : {Lane::device, Lane::cpu})
            for (const Step& step : segment.on(lane))
                if (!tags.run(lane, step)) return &step;
    }
    return nullptr;
}

}  // namespace hf
