// Lanes: the device and the CPU beside it, as executors of one plan.
#pragma once

#include <optional>
#include <span>

#include "cpuexec/thread_pool.h"
#include "libcore/device/device.h"
#include "libcore/exec/capture_gate.h"
#include "libcore/exec/cpu_trace.h"
#include "libcore/exec/lane_counts.h"
#include "libcore/plan/segments.h"

namespace hf {

struct LaneOptions {
    std::optional<bool> capture = {};  // of whole tokens; none: as much as can be
    bool trace_cpu = false;            // lines of what the CPU does and what crosses
    StepTimer* cpu_timer = nullptr;    // told what the CPU's steps took; must outlive the lanes
    Log log = {};
    /// Overwrites with NaN what a lane may not read: all slots before a pass, and on the other lane
    /// whatever a lane writes. For tests.
    bool poison_stale = false;
    bool pins = true;            // whether the CPU's arena may be pinned
    StepWatch* watch = nullptr;  // told when a lane begins and ends; must outlive the lanes
};

/// The only code that knows that there are two lanes. Each has an arena of its own. The CPU's is
/// pinned memory where it may be, so activations are copied from arena to arena, and it has a team
/// of its own, so both halves of a window run at the same time.
class Lanes {
  public:
    /// plans  what will be run, by token class; must outlive the lanes. Without CPU steps in them
    ///        there is no CPU lane
    /// Errors  hf::Error when memory runs out, or the capture that is wanted cannot be
    Lanes(Device& device, const ArenaLayout& layout, std::span<const SegmentPlan> plans,
          const LaneOptions& options);
    ~Lanes() { device_.wait(); }  // a pass that ended in an error may have left it at work

    /// Runs a plan, and returns when all is done. The arena and lane of `tokens` are set here.
    void run(const SegmentPlan& plan, const Tokens& tokens);
    /// The same for steps of the device alone.
    void run_on_device(std::span<const Step> steps, const Tokens& tokens);

    /// Rows [0, rows) of a slot, as a lane left them.
    void read(Lane lane, Slot slot, uint32_t rows, std::span<float> to) const;

    const LaneCounts& counts() const { return counts_; }
    const CaptureGate& gate() const { return gate_; }

  private:
    Device& device_;
    const ArenaLayout& layout_;
    LaneOptions options_;
    Buffer device_arena_, cpu_arena_;
    std::optional<cpu::ThreadPool> team_;
    CaptureGate gate_;
    LaneCounts counts_;
    LaneCounts products_[kTokenClasses];  // of one pass
    std::optional<CpuTrace> trace_;

    Tokens on(Lane lane, const Tokens& tokens) const;
    void run(const SegmentPlan& plan, size_t segment, const Tokens& tokens);
    void cross(const SegmentPlan& plan, size_t segment, const Tokens& tokens);
    uint64_t copy(Lane to, const SlotCopy& copy, uint32_t rows);
    void poison(Lane lane, const SlotCopy& columns, uint32_t rows);
    void poison_all();
    void poison_stale(const Segment& segment, const Tokens& tokens);
};

}  // namespace hf
