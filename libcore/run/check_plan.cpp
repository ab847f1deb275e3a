#include "libcore/run/check_plan.h"

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/run/load_placed.h"

namespace hf {
namespace {

[[noreturn]] void fail(const Weight& w, std::string_view what) {
    throw Error(fmt::format("{}: {}; please report this", w.name, what));
}

bool is_ffn_matrix(Role role) {
    return role == Role::ffn_gate || role == Role::ffn_up || role == Role::ffn_down;
}

void check_place(const ModelPlan& plan, const PlannedWeight& p) {
    const Weight& w = *p.weight;
    const bool has_layer = p.source.layer != Step::kNoLayer;
    const bool is_matrix = p.source.row->use == Use::matrix;
    const bool must_spill =
        is_matrix && has_layer && p.source.layer < plan.layout.spilled() &&
        (plan.budget.spill == Spill::layers || is_ffn_matrix(p.source.row->role));
    const bool has_left = w.residency != Residency::device;
    if (must_spill && !has_left) fail(w, "belongs to a spilled layer, but stays on the device");
    if (has_left && !must_spill && p.source.row->role != Role::embedding)
        fail(w, "leaves the device, but does not belong to what is spilled");
    if (!has_layer && w.residency == Residency::host_mapped)
        fail(w, "belongs to no layer, but is pinned");
    if (w.exec != Exec::device && !has_left)
        fail(w, "is on the device, but is multiplied by the CPU");
    if (w.exec != Exec::cpu && w.residency == Residency::host_plain)
        fail(w, "is in ordinary memory, but is multiplied by the device");
    if (plan.budget.exec == Exec::device && has_layer && w.exec != Exec::device)
        fail(w, "is multiplied by the CPU, but exec is pcie");
    const bool is_cut = w.split_row > 0 && w.split_row < w.shape.rows;
    if ((w.exec == Exec::split) != is_cut) fail(w, "is cut outside its rows");
}

void check_equal(std::string_view what, uint64_t planned, uint64_t found) {
    if (planned != found)
        throw Error(fmt::format("{}: {} were planned, but there are {}; please report this", what,
                                planned, found));
}

constexpr std::string_view kMemories[kResidencies] = {  // by Residency
    "bytes on the device", "pinned bytes", "bytes of ordinary memory"};

/// Copies that the device made: what it reads in place is not among them.
void check_weights(const PlanFacts& facts, const LoadStats& loaded, const MemoryUse& use) {
    check_equal("mirrored bytes", facts.totals.mirrored_bytes, loaded.mirrored_bytes);
    for (size_t r = 0; r < kResidencies; ++r) {
        check_equal(kMemories[r], facts.totals.bytes[r], loaded.bytes[r]);
        check_equal(fmt::format("{} that were allocated", kMemories[r]),
                    loaded.allocated(Residency(r)), use.bytes[r]);
    }
    if (facts.device.in_place) return;
    const size_t pinned = size_t(Residency::host_mapped);
    check_equal("pinned tensors", facts.totals.tensors[pinned], use.buffers[pinned]);
    check_equal("bytes of slack", facts.pad_bytes, use.slack_bytes);
}

}  // namespace

void check_placement(const ModelPlan& plan) {
    for (const PlannedWeight& p : plan.weights) check_place(plan, p);
}

void check_loaded(const PlanFacts& facts, Device& device, const Config& config, const Log& log) {
    const uint32_t before = device.in_use().all_buffers();
    {
        const Model model = load_placed(facts.plan.file, device, config, 1, log);
        const MemoryUse weights = device.in_use();
        check_weights(facts, model.stats, weights);
        const Session session(model, device, session_options(config.memory, model.config, 1));
        const MemoryUse all = device.in_use();
        check_equal("bytes of the session on the device", facts.session.device_bytes,
                    all.bytes[0] - weights.bytes[0]);
        check_equal("bytes of the session in host memory", facts.session.host_bytes,
                    all.bytes[1] + all.bytes[2] - weights.bytes[1] - weights.bytes[2]);
    }
    check_equal("buffers behind the load", before, device.in_use().all_buffers());
}

}  // namespace hf
