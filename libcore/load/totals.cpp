#include "libcore/load/totals.h"

#include "libcore/load/model.h"

namespace hf {
namespace {

void add(WeightTotals& totals, Residency residency, uint64_t bytes) {
    totals.bytes[size_t(residency)] += bytes;
    totals.tensors[size_t(residency)] += 1;
}

/// Vectors and sidecars: float32 on the device, and perhaps a mirror.
void add_values(WeightTotals& totals, uint64_t count, bool is_mirrored) {
    add(totals, Residency::device, count * sizeof(float));
    if (is_mirrored) totals.mirrored_bytes += count * sizeof(float);
}

}  // namespace

WeightTotals planned_totals(const ModelPlan& plan) {
    WeightTotals totals;
    for (const auto& [weight, source] : plan.weights) {
        const Weight& w = *weight;
        if (source.row->use == Use::vector) {
            add_values(totals, w.shape.rows * w.shape.cols, w.is_mirrored);
            continue;
        }
        add(totals, w.residency, w.bytes());
        if (source.levels) add_values(totals, source.levels->dims[0], w.is_mirrored);
        if (source.awq_scale) add_values(totals, source.awq_scale->dims[0], w.is_mirrored);
    }
    return totals;
}

uint64_t device_copy_bytes(const WeightTotals& totals, const ModelPlan& plan, bool in_place) {
    uint64_t bytes = totals.bytes[size_t(Residency::device)];
    for (const auto& [weight, source] : plan.weights)
        if (in_place && source.row->use == Use::matrix && weight->residency == Residency::device)
            bytes -= weight->bytes();
    return bytes;
}

}  // namespace hf
