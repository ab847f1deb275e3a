// The pass that makes rotations explicit: once per distinct input, rotation and scale.
#include <doctest/doctest.h>

#include <vector>

#include "libcore/plan/lower_rotations.h"

using namespace hf;

namespace {

Weight weight(const char* codec, uint64_t rows, uint64_t cols, uint32_t awq_id = 0) {
    Weight w;
    w.codec = codec_by_name(codec);
    w.shape = {rows, cols};
    w.awq_id = awq_id;
    return w;
}

size_t count(const std::vector<Step>& steps, Op op) {
    size_t n = 0;
    for (const Step& s : steps) n += s.op == op;
    return n;
}

}  // namespace

TEST_CASE("lower_rotations: a list without rotated formats comes back as it is") {
    SlotTable slots;
    const Slot x = slots.add("x", 256), y = slots.add("y", 64);
    const Weight w = weight("q8_0", 64, 256);
    StepList list;
    list.gemv(w, x, y);
    const auto lowered = lower_rotations(list.steps, slots);
    REQUIRE(lowered.size() == 1);
    CHECK(lowered[0].in[0] == x);
    CHECK(slots.slots.size() == 2);
}

TEST_CASE("lower_rotations: products of one input share its rotation, others get their own") {
    SlotTable slots;
    const Slot x = slots.add("x", 256), y = slots.add("y", 256), z = slots.add("z", 256);
    const Weight plain = weight("q8_0", 256, 256), a = weight("mq4g256", 256, 256),
                 b = weight("mq6g256", 256, 256), scaled = weight("mq4g256", 256, 256, 1),
                 scaled_alike = weight("mq3g256", 256, 256, 1),
                 scaled_else = weight("mq4g256", 256, 256, 2);
    StepList list;
    list.gemv(plain, x, y);
    list.gemv(a, x, y);
    list.gemv(b, x, z);             // another format, the same rotation: shared
    list.gemv(scaled, x, z);        // another scale: its own
    list.gemv(scaled_alike, x, z);  // shared
    list.gemv(scaled_else, x, z);   // its own
    list.gemv(a, y, z);             // another input
    const auto lowered = lower_rotations(list.steps, slots);
    CHECK(count(lowered, Op::rotate) == 4);
    CHECK(lowered[0].in[0] == x);
    for (const Step& s : lowered)
        if (s.op == Op::gemv && s.w->codec->rotation != Rotation::none) CHECK(s.in[0] != x);
}

TEST_CASE("lower_rotations: an input that was written again is rotated again, in the same slot") {
    SlotTable slots;
    const Slot x = slots.add("x", 256), y = slots.add("y", 256);
    const Weight a = weight("mq4g256", 256, 256);
    StepList list;
    for (int layer = 0; layer < 5; ++layer) {
        list.gemv(a, x, y);
        list.gemv_residual(a, y, x);  // writes x
    }
    const auto lowered = lower_rotations(list.steps, slots);
    CHECK(count(lowered, Op::rotate) == 10);
    CHECK(slots.slots.size() == 4);  // two inputs, one rotated copy each
    for (size_t i = 0; i < lowered.size(); i += 2) {
        CHECK(lowered[i].op == Op::rotate);
        CHECK(lowered[i].out[0] == lowered[i + 1].in[0]);
    }
}
