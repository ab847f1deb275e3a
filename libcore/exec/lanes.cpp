#include "libcore/exec/lanes.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/load/host_fit.h"
#include "libcore/ops/run_steps.h"

namespace hf {
namespace {

float* floats(const Buffer& arena) {
    return reinterpret_cast<float*>(arena.writable());
}

/// Calls f(first float, floats) for the columns of each row; once where rows are whole.
template <class F>
void for_rows(const ArenaLayout& layout, const SlotCopy& c, uint32_t rows, F f) {
    const uint64_t width = c.slot.width, first = layout.offset[c.slot.id];
    if (c.end - c.begin == width) {
        if (rows > 0) f(first, rows * width);
        return;
    }
    for (uint64_t t = 0; t < rows; ++t) f(first + t * width + c.begin, uint64_t(c.end - c.begin));
}

/// Columns of an output that a step writes: products the rows that they compute, copies theirs.
SlotCopy written_columns(const Step& step, Slot out) {
    if (is_product(step.op)) return {out, step.params.row_begin, step.params.row_end};
    if (step.op == Op::copy)
        return {out, step.params.offset, step.params.offset + step.in[0].width};
    return {out, 0, out.width};
}

bool any_window(std::span<const SegmentPlan> plans) {
    for (const SegmentPlan& plan : plans)
        if (std::ranges::any_of(plan.segments, &Segment::is_window)) return true;
    return false;
}

}  // namespace

Lanes::Lanes(Device& device, const ArenaLayout& layout, std::span<const SegmentPlan> plans,
             const LaneOptions& options)
    : device_(device),
      layout_(layout),
      options_(options),
      device_arena_(device.allocate(layout.floats * sizeof(float), Residency::device)) {
    if (std::ranges::none_of(plans, [](const auto& p) { return p.has_steps_on(Lane::cpu); }))
        return;
    cpu_arena_ = device.allocate(layout.floats * sizeof(float),
                                 cpu_lane_residency(device.info(), options.pins));
    team_.emplace(device.info().threads);
    if (any_window(plans)) device.work_beside();
}

Tokens Lanes::on(Lane lane, const Tokens& tokens) const {
    Tokens t = tokens;
    t.arena = floats(lane == Lane::cpu ? cpu_arena_ : device_arena_);
    t.arena_layout = &layout_;
    t.lane = lane;
    t.watch = options_.watch;
    if (lane == Lane::device) return t;
    t.state = nullptr;  // the device's
    t.level = device_.info().level;
    return t;
}

void Lanes::run(const SegmentPlan& plan, const Tokens& tokens) {
    if (options_.poison_stale) poison_all();
    const Tokens on_device = on(Lane::device, tokens);
    for (const Segment& segment : plan.segments) {
        cross(segment, tokens);
        if (options_.poison_stale) poison_stale(segment, tokens);
        if (!segment.on(Lane::device).empty()) device_.submit(segment.on(Lane::device), on_device);
        if (!segment.on(Lane::cpu).empty())
            run_steps(segment.on(Lane::cpu), on(Lane::cpu, tokens), *team_);
    }
    device_.wait();
}

void Lanes::run_on_device(std::span<const Step> steps, const Tokens& tokens) {
    device_.submit(steps, on(Lane::device, tokens));
    device_.wait();
}

void Lanes::read(Lane lane, Slot slot, uint32_t rows, std::span<float> to) const {
    HF_ASSERT(to.size() == uint64_t(rows) * slot.width);
    const uint64_t first = layout_.offset[slot.id];
    if (lane == Lane::cpu)
        std::copy_n(floats(cpu_arena_) + first, to.size(), to.begin());
    else
        device_.download(device_arena_, first * sizeof(float), std::as_writable_bytes(to));
}

void Lanes::cross(const Segment& segment, const Tokens& tokens) {
    uint64_t up = 0, down = 0;
    for (const SlotCopy& c : segment.up) up += copy(Lane::device, c, tokens.rows(c.slot));
    for (const SlotCopy& c : segment.down) down += copy(Lane::cpu, c, tokens.rows(c.slot));
    counts_.crossings += (up > 0) + (down > 0);
    counts_.bytes_up += up;
    counts_.bytes_down += down;
}

/// Both arenas have the same layout. The device's side of a copy waits for what it was given to do.
uint64_t Lanes::copy(Lane to, const SlotCopy& copy, uint32_t rows) {
    for_rows(layout_, copy, rows, [&](uint64_t first, uint64_t n) {
        const std::span<float> host(floats(cpu_arena_) + first, n);
        if (to == Lane::cpu)
            device_.download(device_arena_, first * sizeof(float), std::as_writable_bytes(host));
        else
            device_.upload(device_arena_, first * sizeof(float), std::as_bytes(host));
    });
    return copy.bytes(rows);
}

void Lanes::poison(Lane lane, const SlotCopy& columns, uint32_t rows) {
    for_rows(layout_, columns, rows, [&](uint64_t first, uint64_t n) {
        const std::vector<float> nan(n, std::numeric_limits<float>::quiet_NaN());
        if (lane == Lane::cpu)
            std::ranges::copy(nan, floats(cpu_arena_) + first);
        else
            device_.upload(device_arena_, first * sizeof(float), std::as_bytes(std::span(nan)));
    });
}

void Lanes::poison_all() {
    const std::vector<float> nan(layout_.floats, std::numeric_limits<float>::quiet_NaN());
    device_.upload(device_arena_, 0, std::as_bytes(std::span(nan)));
    if (team_) std::ranges::copy(nan, floats(cpu_arena_));
}

/// What a lane writes is stale on the other from here on.
void Lanes::poison_stale(const Segment& segment, const Tokens& tokens) {
    if (!team_) return;
    for (const Lane lane : {Lane::cpu, Lane::device})
        for (const Step& step : segment.on(lane))
            for (const Slot& out : step.out)
                if (out.exists())
                    poison(lane == Lane::cpu ? Lane::device : Lane::cpu, written_columns(step, out),
                           tokens.rows(out));
}

}  // namespace hf
