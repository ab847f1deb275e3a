#include "libcore/exec/lanes.h"

#include <algorithm>
#include <chrono>
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

/// What each pass of a plan adds to the counts of products.
LaneCounts products_of(const SegmentPlan& plan) {
    LaneCounts counts;
    for (const Segment& segment : plan.segments) {
        for (const Step& s : segment.on(Lane::cpu)) counts.cpu_products += is_product(s.op);
        for (const Step& s : segment.on(Lane::device))
            counts.link_products += is_product(s.op) && s.w->exec == Exec::device &&
                                    s.w->residency == Residency::host_mapped;
    }
    return counts;
}

template <class F>
double seconds_of(F f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
      device_arena_(device.allocate(layout.floats * sizeof(float), Residency::device)),
      gate_(device, plans[size_t(TokenClass::one)], options.capture, options.log) {
    for (const SegmentPlan& plan : plans) products_[size_t(plan.token_class)] = products_of(plan);
    if (std::ranges::none_of(plans, [](const auto& p) { return p.has_steps_on(Lane::cpu); }))
        return;
    cpu_arena_ = device.allocate(layout.floats * sizeof(float),
                                 cpu_lane_residency(device.info(), options.pins));
    team_.emplace(device.info().threads);
    if (options_.trace_cpu) trace_.emplace(options_.log, counts_, options_.cpu_timer);
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
    const LaneCounts& products = products_[size_t(plan.token_class)];
    counts_.cpu_products += products.cpu_products;
    counts_.link_products += products.link_products;
    for (size_t i = 0; i < plan.segments.size(); ++i) run(plan, i, tokens);
    device_.wait();
}

void Lanes::run(const SegmentPlan& plan, size_t i, const Tokens& tokens) {
    const Segment& segment = plan.segments[i];
    cross(plan, i, tokens);
    if (options_.poison_stale) poison_stale(segment, tokens);
    if (!segment.on(Lane::device).empty()) gate_.submit(plan, i, on(Lane::device, tokens));
    if (segment.on(Lane::cpu).empty()) return;
    StepTimer* const timer = trace_ ? &*trace_ : options_.cpu_timer;
    run_steps(segment.on(Lane::cpu), on(Lane::cpu, tokens), *team_, timer);
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

void Lanes::cross(const SegmentPlan& plan, size_t i, const Tokens& tokens) {
    const Segment& segment = plan.segments[i];
    Crossing c;
    if (trace_) c.wait_seconds = seconds_of([&] { device_.wait(); });
    c.up_seconds = seconds_of([&] {
        for (const auto& s : segment.up) c.bytes_up += copy(Lane::device, s, tokens.rows(s.slot));
    });
    c.down_seconds = seconds_of([&] {
        for (const auto& s : segment.down) c.bytes_down += copy(Lane::cpu, s, tokens.rows(s.slot));
    });
    counts_.crossings += (c.bytes_up > 0) + (c.bytes_down > 0);
    counts_.bytes_up += c.bytes_up;
    counts_.bytes_down += c.bytes_down;
    if (trace_) trace_->add(plan, i, c);
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
