#include "libcore/load/mapped_weights.h"

namespace hf {
namespace {

bool is_read_in_place(const PlannedWeight& p, const DeviceInfo& info) {
    return p.source.row->use == Use::matrix &&
           (info.in_place || p.weight->residency == Residency::host_plain);
}

template <class F>
PageRanges pages_where(const ModelPlan& plan, F is_wanted) {
    std::vector<std::span<const std::byte>> spans;
    for (const PlannedWeight& p : plan.weights)
        if (is_wanted(p)) spans.push_back(p.source.tensor->bytes);
    return pages_of(std::move(spans));
}

}  // namespace

PageRanges mapped_pages(const ModelPlan& plan, const DeviceInfo& info) {
    return pages_where(plan, [&](const PlannedWeight& p) { return is_read_in_place(p, info); });
}

PageRanges pages_of_a_pass(const ModelPlan& plan, const DeviceInfo& info) {
    const bool has_head = !plan.config.tied_embeddings;
    return pages_where(plan, [&](const PlannedWeight& p) {
        const bool is_read_by_row = p.source.row->role == Role::embedding && has_head;
        return is_read_in_place(p, info) && (!is_read_by_row || plan.budget.lock);
    });
}

void touch_weights(const Model& model, const DeviceInfo& info, const HostRam& ram,
                   const Progress& progress, const std::atomic<bool>& stop) {
    const PageRanges pages = pages_of_a_pass(model, info);
    if (total_bytes(pages) > ram.available.value_or(0)) return;
    cpu::ThreadPool pool(info.threads);
    touch_pages(pages, pool, progress, stop);
}

}  // namespace hf
