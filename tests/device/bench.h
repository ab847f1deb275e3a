// A bench: arena, state and device for steps made by hand.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "cpuexec/isa.h"
#include "libcore/device/host_device.h"
#include "libcore/model/state.h"
#include "libcore/model/steps.h"

namespace hf::test {

/// An arena and a state slab for a few hand-made steps.
struct Bench {
    Bench(const StateSpec& spec, const SlotTable& slots, uint32_t max_seq, const char* kv = "f32",
          cpu::Level level = cpu::detect_level())
        : device({2, level, cpu::Activations::f32}),
          layout(lay_out_state(spec, *kv_type_by_name(kv), max_seq, 64)),
          arena_layout(lay_out_arena(slots, 64, 1)),
          arena(arena_layout.floats),
          state(layout.bytes) {}

    Tokens pass(uint32_t pos, uint32_t count) {
        Tokens t;
        t.pos = pos;
        t.count = count;
        t.arena = arena.data();
        t.arena_layout = &arena_layout;
        t.state = state.data();
        t.state_layout = &layout;
        return t;
    }
    void run(const StepList& list, const Tokens& t) { device.submit(list.steps, t); }
    /// A weight of float32 values on the device.
    Weight weight(Shape shape, const std::vector<float>& values) {
        Weight w;
        w.codec = codec_by_name("f32");
        w.shape = shape;
        w.data.buffer = device.allocate(values.size() * sizeof(float), Residency::device);
        device.upload(w.data.buffer, 0, std::as_bytes(std::span(values)));
        return w;
    }

    HostDevice device;
    StateLayout layout;
    ArenaLayout arena_layout;
    std::vector<float> arena;
    std::vector<std::byte> state;
};

inline std::vector<float> random_floats(size_t n, uint32_t seed, float low = -1, float high = 1) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> draw(low, high);
    std::vector<float> values(n);
    for (float& v : values) v = draw(engine);
    return values;
}

inline void put(const Tokens& t, Slot slot, uint32_t row, const float* values) {
    std::copy_n(values, slot.width, t.row(slot, row));
}

}  // namespace hf::test
