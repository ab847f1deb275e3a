#include "libcore/exec/capture_gate.h"

#include <fmt/format.h>

#include <algorithm>

#include "libcore/base/error.h"

namespace hf {
namespace {

bool is_input(const Step& step) {
    return step.op == Op::embed;
}

/// What the CPU does of a segment, input apart.
size_t cpu_steps(const Segment& segment) {
    return size_t(
        std::ranges::count_if(segment.on(Lane::cpu), [](const Step& s) { return !is_input(s); }));
}

size_t cpu_steps(const SegmentPlan& plan) {
    size_t n = 0;
    for (const Segment& segment : plan.segments) n += cpu_steps(segment);
    return n;
}

bool is_device_only(const Segment& segment) {
    return segment.on(Lane::cpu).empty() && !segment.on(Lane::device).empty();
}

CaptureReport report_on(const Device& device, const SegmentPlan& plan, std::optional<bool> wanted) {
    if (wanted == false) return {CaptureMode::off, "experimental.graph.forward = false"};
    if (!device.info().can_capture)
        return {CaptureMode::off, fmt::format("{} records no steps", device.info().name)};
    const size_t n = cpu_steps(plan);
    if (n == 0) return {CaptureMode::token, "no step of the CPU is among a token's"};
    if (std::ranges::none_of(plan.segments, is_device_only))
        return {CaptureMode::off, fmt::format("all segments have some of {} steps of the CPU", n)};
    return {CaptureMode::segments, fmt::format("{} steps of the CPU are among a token's", n)};
}

}  // namespace

std::string_view name_of(CaptureMode mode) {
    constexpr std::string_view kNames[] = {"off", "segments", "token"};
    return kNames[size_t(mode)];
}

CaptureGate::CaptureGate(Device& device, const SegmentPlan& plan, std::optional<bool> wanted,
                         const Log& log)
    : device_(device), plan_(plan), report_(report_on(device, plan, wanted)) {
    if (wanted == true && report_.mode != CaptureMode::token)
        throw Error(
            fmt::format("refused: experimental.graph.forward = true: {}; set it to auto, or "
                        "memory.offload_exec to pcie",
                        report_.reason),
            Fault::refused);
    log.debug(fmt::format("capture: {} ({})", name_of(report_.mode), report_.reason));
    captures_.resize(report_.mode == CaptureMode::off ? 0 : plan.segments.size());
    if (wanted != false && device.info().can_capture && cpu_steps(plan) > 0)
        log.debug("cpu exec: hipGraph capture disabled (CPU-executed steps present)");
}

uint32_t CaptureGate::captures() const {
    return uint32_t(std::ranges::count_if(captures_, [](const auto& c) { return c != nullptr; }));
}

void CaptureGate::submit(const SegmentPlan& plan, size_t i, const Tokens& tokens) {
    const Segment& segment = plan.segments[i];
    const bool may_replay = report_.mode != CaptureMode::off && &plan == &plan_ &&
                            tokens.count == 1 && tokens.commits == 1 && tokens.logit_count == 1;
    if (!may_replay || !is_device_only(segment))
        return device_.submit(segment.on(Lane::device), tokens);
    if (!captures_[i]) captures_[i] = capture(segment, tokens);
    device_.replay(*captures_[i], tokens);
}

std::unique_ptr<Capture> CaptureGate::capture(const Segment& segment, const Tokens& tokens) {
    if (!is_device_only(segment))
        throw Error(fmt::format("refused: a capture of {} steps with {} of the CPU among them: a "
                                "replay would leave those out",
                                segment.on(Lane::device).size(), segment.on(Lane::cpu).size()),
                    Fault::refused);
    return device_.capture(segment.on(Lane::device), tokens);
}

}  // namespace hf
