// CpuTrace: what the CPU lane costs, as lines of key=value.
#pragma once

#include <cstdint>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/exec/lane_counts.h"
#include "libcore/ops/profile.h"
#include "libcore/plan/segments.h"

namespace hf {

/// Means over the calls of a product's shape, and of a segment's border. A line is written at the
/// first call and whenever their number is a power of two; the first one is cold, the last one is
/// the one to quote.
///
///   cpu exec: step op=gemv m=12288 k=4096 quant=mq4g256 rotated=1 residual=0 awq=0 rows=12288
///     tokens=one calls=64 cpu_products=3968 link_products=0 gemv_ms=0.71
///   cpu exec: border class=one segment=3 calls=64 bytes_up=16384 bytes_down=16384 wait_ms=6.80
///     up_ms=0.02 down_ms=0.01
/// (each on one line)
class CpuTrace : public StepTimer {
  public:
    /// counts  printed on every line; log and counts outlive the trace
    /// next    null, or told the same
    CpuTrace(const Log& log, const LaneCounts& counts, StepTimer* next)
        : log_(log), counts_(counts), next_(next) {}

    void add(const Step& step, const Tokens& tokens, double seconds,
             double thread_seconds) override;
    void add(const SegmentPlan& plan, size_t segment, const Crossing& crossing);

  private:
    struct Shape {
        const Weight* first;  // with that shape
        uint32_t rows;        // that the CPU computes
        bool residual, several_tokens;
        uint64_t calls = 0;
        double seconds = 0;
    };
    struct Border {
        TokenClass token_class;
        size_t segment;
        uint64_t calls = 0;
        Crossing sum = {};
    };

    const Log& log_;
    const LaneCounts& counts_;
    StepTimer* next_;
    std::vector<Shape> shapes_;
    std::vector<Border> borders_;
};

}  // namespace hf
