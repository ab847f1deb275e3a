#include "libcore/load/mapped_weights.h"

namespace hf {
namespace {

bool is_read_in_place(const PlannedWeight& p, const DeviceInfo& info) {
    return p.source.row->use == Use::matrix &&
           (info.in_place || p.weight->residency == Residency::host_plain);
}

/// A row for a token: an embedding table that is not the head as well.
bool is_read_by_row(const PlannedWeight& p, const ModelPlan& plan) {
    return p.source.row->role == Role::embedding && !plan.config.tied_embeddings;
}

}  // namespace

PageRanges mapped_pages(const ModelPlan& plan, const DeviceInfo& info) {
    std::vector<std::span<const std::byte>> spans;
    for (const PlannedWeight& p : plan.weights)
        if (is_read_in_place(p, info)) spans.push_back(p.source.tensor->bytes);
    return pages_of(std::move(spans));
}

PageRanges pages_to_touch(const ModelPlan& plan, const DeviceInfo& info) {
    std::vector<std::span<const std::byte>> spans;
    for (const PlannedWeight& p : plan.weights) {
        const bool is_wanted = is_read_in_place(p, info)
                                   ? plan.budget.lock || !is_read_by_row(p, plan)
                                   : p.source.row->use == Use::vector;
        if (is_wanted && p.source.tensor) spans.push_back(p.source.tensor->bytes);
        for (const TensorView* sidecar : {p.source.levels, p.source.awq_scale})
            if (sidecar) spans.push_back(sidecar->bytes);
    }
    return pages_of(std::move(spans));
}

void touch_weights(const ModelPlan& plan, const DeviceInfo& info, const HostRam& ram,
                   const Progress& progress, const std::atomic<bool>& stop) {
    const PageRanges pages = pages_to_touch(plan, info);
    if (total_bytes(pages) > ram.available.value_or(0)) return;
    cpu::ThreadPool pool(info.threads);
    touch_pages(pages, pool, progress, stop);
}

}  // namespace hf
