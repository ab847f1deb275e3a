// The pass that makes the preparation of activations explicit, and records what products take.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "cpuexec/activations.h"
#include "libcore/plan/lower_activations.h"
#include "libcore/plan/lower_rotations.h"

using namespace hf;
using cpu::Activations;

namespace {

Weight weight(const char* codec, uint64_t rows, uint64_t cols) {
    Weight w;
    w.codec = codec_by_name(codec);
    w.shape = {rows, cols};
    return w;
}

size_t count(const std::vector<Step>& steps, Op op) {
    return size_t(std::ranges::count(steps, op, &Step::op));
}

}  // namespace

TEST_CASE("lower_activations: float32 is what products take unless they are told otherwise") {
    SlotTable slots;
    const Slot x = slots.add("x", 256), y = slots.add("y", 64);
    const Weight q = weight("q8_0", 64, 256), f = weight("bf16", 64, 256);
    StepList list;
    list.gemv(q, x, y);
    list.gemv(f, x, y);
    for (const Activations wanted : {Activations::f32, Activations::i16, Activations::int8}) {
        const auto lowered = lower_activations(list.steps, wanted, slots);
        const bool integers = wanted != Activations::f32;
        REQUIRE(lowered.size() == (integers ? 3 : 2));
        CHECK(lowered.end()[-2].params.activations == wanted);
        CHECK(lowered.end()[-1].params.activations == Activations::f32);  // bf16 takes nothing else
        CHECK(lowered.end()[-1].in[0] == x);
        if (!integers) continue;
        CHECK(lowered[0].op == Op::prepare);
        CHECK(lowered[0].params.activations == wanted);
        CHECK(lowered[0].in[0] == x);
        CHECK(lowered[0].out[0] == lowered[1].in[0]);
        CHECK(lowered[1].in[0].width == cpu::prepared_floats(q.codec->cpu.prepare, wanted, 256));
    }
}

TEST_CASE("lower_activations: products of one input and one preparation share it") {
    SlotTable slots;
    const Slot x = slots.add("x", 256), y = slots.add("y", 256);
    const Weight a = weight("q4_0", 256, 256), alike = weight("q4_0", 256, 256),
                 other = weight("q8_0", 256, 256);
    StepList list;
    list.gemv(a, x, y);
    list.gemv(alike, x, y);
    list.gemv(other, x, y);  // its codes are unpacked in another order
    list.gemv(a, x, y);
    list.gemv(a, y, x);  // another input; x is written
    list.gemv(a, x, y);
    const auto lowered = lower_activations(list.steps, Activations::i16, slots);
    CHECK(count(lowered, Op::prepare) == 4);
    CHECK(lowered[1].op == Op::prepare);  // both in front of all products of x
    CHECK(lowered[2].in[0] == lowered[3].in[0]);
    CHECK(lowered[2].in[0] == lowered[0].out[0]);
    CHECK(lowered[4].in[0] == lowered[1].out[0]);
    CHECK(slots.slots.size() == 5);  // two prepared ones of x, one of y; the last reuses a slot
}

TEST_CASE("lower_activations: what was rotated is prepared after its rotation") {
    SlotTable slots;
    const Slot x = slots.add("x", 256), y = slots.add("y", 256);
    const Weight a = weight("mq4g256", 256, 256);
    StepList list;
    for (int layer = 0; layer < 3; ++layer) {
        list.gemv(a, x, y);
        list.gemv_residual(a, y, x);  // writes x
    }
    const auto rotated = lower_rotations(list.steps, slots);
    const auto lowered = lower_activations(rotated, Activations::int8, slots);
    REQUIRE(lowered.size() == 18);
    for (size_t i = 0; i < lowered.size(); i += 3) {
        CHECK(lowered[i].op == Op::rotate);
        CHECK(lowered[i + 1].op == Op::prepare);
        CHECK(lowered[i + 1].in[0] == lowered[i].out[0]);
        CHECK(lowered[i + 2].in[0] == lowered[i + 1].out[0]);
    }
}
