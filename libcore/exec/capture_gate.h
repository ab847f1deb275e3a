// CaptureGate: which of a device's steps are recorded once and replayed for every further token.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/device/device.h"
#include "libcore/plan/segments.h"

namespace hf {

enum class CaptureMode : uint8_t {
    off,
    segments,  // those that are the device's alone
    token,     // all that a token runs
};
std::string_view name_of(CaptureMode mode);

struct CaptureReport {
    CaptureMode mode = CaptureMode::off;
    std::string reason;  // why this much and no more
};

/// The only caller of Device::capture. A recording repeats what a device was given and nothing
/// else: a step of the CPU inside would run while it is recorded and be missing from every replay.
/// So whatever holds one is refused. An embedding row that the host writes before anything else
/// runs is input, not a step in between.
///
/// Passes of one token and one row of logits that make the token before real are captured, each
/// segment when it first runs.
class CaptureGate {
  public:
    /// plan    of passes of one token; must outlive the gate, as the device must
    /// wanted  experimental.graph.forward: true, false, or none for as much as can be
    /// log     told once when a whole token cannot be captured because of the CPU's steps
    /// Errors  hf::Error(refused) when true was wanted and a whole token cannot be captured
    CaptureGate(Device& device, const SegmentPlan& plan, std::optional<bool> wanted,
                const Log& log);

    const CaptureReport& report() const { return report_; }
    /// How many segments have been recorded so far.
    uint32_t captures() const;

    /// Starts the device's steps of segment i of a plan: replays them where they are captured or
    /// may be, submits them where not.
    void submit(const SegmentPlan& plan, size_t i, const Tokens& tokens);

    /// Records the device's steps of a segment.
    /// Errors  hf::Error(refused) when there are steps of the CPU in it, or rows of a product
    std::unique_ptr<Capture> capture(const Segment& segment, const Tokens& tokens);

  private:
    Device& device_;
    const SegmentPlan& plan_;
    CaptureReport report_;
    std::vector<std::unique_ptr<Capture>> captures_;  // by segment of the plan, once it was met
};

}  // namespace hf
