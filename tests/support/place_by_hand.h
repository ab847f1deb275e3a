// Placements for tests, written into a plan weight by weight.
#pragma once

#include <algorithm>
#include <string>

#include "libcore/load/model.h"

namespace hf::test {

struct HandPlacement {
    uint32_t layers = 0;  // the first ones
    Exec exec = Exec::device;
    bool ffn_only = false;
    double share = 0.375;         // split: of the rows, the device's
    bool host_embedding = false;  // unless it is the head
    Residency residency = Residency::host_mapped;
};

inline std::string text(const HandPlacement& s) {
    const char* const execs[] = {"pcie", "cpu", "split"};
    return std::to_string(s.layers) + " layers" + (s.ffn_only ? " (ffn), " : ", ") +
           execs[size_t(s.exec)] + (s.host_embedding ? ", embedding on the host" : "");
}

inline bool is_ffn(Role role) {
    return role == Role::ffn_gate || role == Role::ffn_up || role == Role::ffn_down;
}

inline void spill_matrix(Weight& w, const HandPlacement& s) {
    w.residency = s.residency;
    w.exec = s.exec;
    w.is_mirrored = s.exec != Exec::device;  // its scale and levels
    if (s.exec != Exec::split) return;
    const uint64_t rows = w.shape.rows;
    if (rows < 32)
        w.exec = Exec::cpu;
    else
        w.split_row = std::clamp<uint64_t>(uint64_t(double(rows) * s.share) / 8 * 8, 8, rows - 8);
}

inline void place(ModelPlan& plan, const HandPlacement& s) {
    for (PlannedWeight& planned : plan.weights) {
        Weight& w = *planned.weight;
        const TensorRow& row = *planned.source.row;
        const bool is_spilled = planned.source.layer < s.layers;  // of no layer: never
        if (row.use == Use::vector)
            w.is_mirrored = s.exec != Exec::device && (is_spilled || row.role == Role::rope_freqs);
        else if (is_spilled && (!s.ffn_only || is_ffn(row.role)))
            spill_matrix(w, s);
        else if (row.role == Role::embedding && s.host_embedding && !plan.config.tied_embeddings) {
            w.residency = Residency::host_plain;
            w.exec = Exec::cpu;
            w.is_mirrored = true;
        }
    }
}

}  // namespace hf::test
