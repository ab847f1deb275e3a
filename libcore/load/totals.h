// WeightTotals: what the weights of a model take, by residency; of a plan, or of a load.
#pragma once

#include <cstdint>

#include "libcore/model/buffer.h"

namespace hf {

struct ModelPlan;

/// Logical bytes of tensors, without slack and rounding. Their sum over residencies is the same for
/// every budget.
struct WeightTotals {
    uint64_t bytes[kResidencies] = {};
    uint32_t tensors[kResidencies] = {};
    uint64_t mirrored_bytes = 0;  // copies of small things for the CPU lane, not in `bytes`

    uint64_t all_bytes() const { return bytes[0] + bytes[1] + bytes[2]; }
    bool operator==(const WeightTotals&) const = default;
};

/// What loading took. Filled by upload_weight, the only function that uploads.
struct LoadStats : WeightTotals {
    uint64_t in_place[kResidencies] = {};  // of `bytes`: read from the mapped file, no copy made

    /// What the device's allocator must have handed out of a residency; mirrors are plain.
    uint64_t allocated(Residency residency) const {
        const size_t r = size_t(residency);
        return bytes[r] - in_place[r] + (residency == Residency::host_plain ? mirrored_bytes : 0);
    }
};

/// What loading a plan will take.
WeightTotals planned_totals(const ModelPlan& plan);

/// Of the bytes of residency `device`, what the device allocates: where it reads files in place,
/// all but the matrices.
///
/// totals  the plan's, or those of its load: both give the same
uint64_t device_copy_bytes(const WeightTotals& totals, const ModelPlan& plan, bool in_place);

}  // namespace hf
