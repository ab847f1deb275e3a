// Rotation and AWQ scale: exactly once in front of each product, on whichever lane it runs.
#include "libcore/plan/activation_tags.h"

#include <doctest/doctest.h>

#include <deque>

#include "libcore/plan/lower_activations.h"
#include "libcore/plan/lower_rotations.h"

using namespace hf;

namespace {

/// A layer's products, of rotated and plain formats, with scales and without.
struct Layers {
    std::deque<Weight> weights;
    SlotTable slots;
    StepList list;

    Weight& weight(const char* codec, uint64_t rows, Exec exec, uint32_t awq_id) {
        Weight& w = weights.emplace_back();
        w.codec = codec_by_name(codec);
        w.shape = {rows, 256};
        w.awq_id = awq_id;
        w.exec = exec;
        w.split_row = exec == Exec::split ? 64 : 0;
        w.residency = exec == Exec::device ? Residency::device : Residency::host_mapped;
        w.is_mirrored = true;
        return w;
    }

    explicit Layers(Exec exec) {
        const Slot x = slots.add("x", 256), normed = slots.add("normed", 256),
                   y = slots.add("y", 256), z = slots.add("z", 256);
        Weight& norm = weights.emplace_back();
        norm.codec = codec_by_name("f32");
        norm.shape = {1, 256};
        norm.is_mirrored = true;
        list.embed(weight("q8_0", 512, Exec::device, 0), x);
        for (const Exec side : {exec, Exec::device, exec}) {
            list.rmsnorm(x, norm, 1e-6f, normed);
            list.gemv(weight("mq4g256", 256, side, 1), normed, y);
            list.gemv(weight("mq6g256", 256, side, 1), normed, z);
            list.silu_mul(y, z, y);
            list.gemv_residual(weight("mq3g256", 256, side, 2), y, x);
            list.gemv(weight("mq4g256", 256, side, 0), x, y);
            list.gemv(weight("q8_0", 256, side, 0), x, z);
            list.silu_mul(y, z, y);
            list.gemv_residual(weight("q8_0", 256, side, 0), y, x);
        }
    }
    SegmentPlan plan(TokenClass c) {
        const auto rotated = lower_rotations(list.steps, slots);
        return plan_segments(lower_activations(rotated, cpu::Activations::i16, slots), c);
    }
};

constexpr Exec kExecs[] = {Exec::device, Exec::cpu, Exec::split};

/// Calls f(plan, steps of a lane, index) for every step with that op, of every plan.
template <class F>
size_t for_every(Op op, F f) {
    size_t count = 0;
    for (const Exec exec : kExecs) {
        Layers layers(exec);
        const SegmentPlan plan = layers.plan(TokenClass::one);
        for (size_t s = 0; s < plan.segments.size(); ++s)
            for (size_t lane = 0; lane < kLanes; ++lane)
                for (size_t i = 0; i < plan.segments[s].steps[lane].size(); ++i) {
                    if (plan.segments[s].steps[lane][i].op != op) continue;
                    SegmentPlan changed = plan;
                    f(changed, changed.segments[s].steps[lane], i);
                    ++count;
                }
    }
    return count;
}

}  // namespace

TEST_CASE("tags: a plan that was made of lowered steps fits, one that was not does not") {
    for (const Exec exec : kExecs)
        for (const TokenClass c : {TokenClass::one, TokenClass::few, TokenClass::prompt}) {
            Layers layers(exec);
            CHECK(find_unfit_step(layers.plan(c)) == nullptr);
            const SegmentPlan raw = plan_segments(layers.list.steps, c);
            REQUIRE(find_unfit_step(raw) != nullptr);
            CHECK(find_unfit_step(raw)->w->codec == codec_by_name("mq4g256"));
        }
}

TEST_CASE("tags: no rotation or preparation can be left out, done twice, or done for another") {
    for (const Op op : {Op::rotate, Op::prepare}) {
        const size_t count = for_every(op, [](SegmentPlan& plan, auto& steps, size_t i) {
            steps.erase(steps.begin() + long(i));
            CHECK(find_unfit_step(plan) != nullptr);
        });
        CHECK(count >= 3 * 9);
        for_every(op, [](SegmentPlan& plan, auto& steps, size_t i) {
            Step again = steps[i];
            again.in[0] = again.out[0];
            steps.insert(steps.begin() + long(i) + 1, again);
            CHECK(find_unfit_step(plan) == &steps[i + 1]);
        });
    }
    for_every(Op::rotate, [](SegmentPlan& plan, auto& steps, size_t i) {
        Weight other;
        other.codec = steps[i].w->codec;
        other.awq_id = steps[i].w->awq_id + 1;
        steps[i].w = &other;
        CHECK(find_unfit_step(plan) != nullptr);
    });
    for_every(Op::prepare, [](SegmentPlan& plan, auto& steps, size_t i) {
        steps[i].params.activations = cpu::Activations::int8;
        CHECK(find_unfit_step(plan) != nullptr);
    });
}

TEST_CASE("tags: a derived activation that does not cross is missed on the other side") {
    size_t crossed = 0;
    for (const Exec exec : {Exec::cpu, Exec::split}) {
        Layers layers(exec);
        const SegmentPlan plan = layers.plan(TokenClass::one);
        for (size_t s = 0; s < plan.segments.size(); ++s)
            for (const bool is_up : {true, false}) {
                const auto& copies = is_up ? plan.segments[s].up : plan.segments[s].down;
                for (size_t i = 0; i < copies.size(); ++i) {
                    const std::string& name = layers.slots.names[copies[i].slot.id];
                    if (!name.ends_with("_rotated") && !name.ends_with("_prepared")) continue;
                    SegmentPlan changed = plan;
                    auto& left = is_up ? changed.segments[s].up : changed.segments[s].down;
                    left.erase(left.begin() + i);
                    CHECK(find_unfit_step(changed) != nullptr);
                    ++crossed;
                }
            }
    }
    CHECK(crossed > 0);
}
