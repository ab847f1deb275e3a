// PlanFacts: where everything of a model would go on a device, and what a token would read and
// copy. From headers alone: nothing is read, copied or allocated.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "libcore/config/config.h"
#include "libcore/exec/session.h"
#include "libcore/load/fit.h"
#include "libcore/load/model.h"

namespace hf {

/// Bytes by who reads them from where.
struct Reads {
    uint64_t vram = 0;  // the device, its own memory
    uint64_t link = 0;  // the device, host memory over the link
    uint64_t cpu = 0;   // the CPU lane, host memory

    uint64_t all() const { return vram + link + cpu; }
    Reads& operator+=(const Reads& more);
    bool operator==(const Reads&) const = default;
};

/// What a segment of a pass reads, of weights and state, and what crosses in front of it.
struct SegmentFacts {
    Reads reads;
    uint32_t crossings = 0;
    uint64_t bytes_up = 0, bytes_down = 0;  // activations, to the device and from it
};

/// A pass, at the start of a context.
struct PassFacts {
    TokenClass token_class = TokenClass::one;
    uint32_t tokens = 0;  // 1 for `one`, typical numbers for the others
    Reads reads = {};     // the sums of its segments
    uint32_t crossings = 0;
    uint64_t bytes_up = 0, bytes_down = 0;
    uint32_t steps = 0, cpu_steps = 0;  // a product that is cut is one of each side
    uint32_t link_products = 0;         // of the device, whose weights are in host memory
    std::vector<SegmentFacts> segments = {};
};

/// One layer, or what belongs to none: embedding, final norm, head.
struct LayerFacts {
    uint32_t layer = Step::kNoLayer;
    Residency residency = Residency::device;  // of what spills of it
    WeightTotals totals;
    Reads reads;  // its matrices, by who multiplies them for one token
    uint32_t matrices = 0, covered = 0;
    std::vector<std::string_view> uncovered;  // formats without a CPU function
    uint32_t cpu_products = 0;                // steps of one token on the CPU
    uint64_t bytes_copied = 0;                // in front of its segments, for one token
};

/// Tensors, sidecars among them, that live and are multiplied in the same way.
struct PlaceFacts {
    Residency residency;
    Exec exec;
    uint32_t tensors = 0;
    uint64_t bytes = 0;
};

/// Matrices of one format, by residency.
struct FormatPlaces {
    const Codec* codec;
    uint64_t bytes[kResidencies] = {};
};

struct PlanFacts {
    ModelPlan plan;  // placed
    DeviceInfo device;
    DeviceNeed need;            // on the device
    SessionNeed session;        // beside the weights
    WeightTotals totals;        // what LoadStats will be
    uint64_t pad_bytes = 0;     // slack behind pinned tensors
    uint64_t locked_bytes = 0;  // pages of the mapped file, where memory.lock is set
    uint64_t sidecar_bytes = 0, vector_bytes = 0, embedding_bytes = 0, head_bytes = 0;
    std::vector<PlaceFacts> places;
    std::vector<FormatPlaces> formats;
    Coverage coverage;
    std::vector<SegmentPlan> segments;  // by token class
    std::array<PassFacts, kTokenClasses> passes;
    LayerFacts of_model;
    std::vector<LayerFacts> layers;
    std::string refusal;  // why hf-run would not load it; empty: it would

    const PassFacts& pass(TokenClass c) const { return passes[size_t(c)]; }
};

/// What can be said about a placed plan. `refusal` is left empty.
///
/// session  of the session that will be made
/// Errors   as session_need
PlanFacts describe_plan(ModelPlan plan, const Device& device, const SessionOptions& session);

/// Plans and places a model as load_placed() would. What that refuses becomes `refusal`.
/// Errors  as plan_model and describe_plan
PlanFacts plan_facts(std::shared_ptr<const ModelFile> file, const Device& device,
                     const Config& config);

/// Bytes a second. Zero: not known.
struct Bandwidth {
    double vram = 0, link = 0, cpu = 0;

    /// What a transfer costs beside its bytes, a launch included: 40 to 50 us were measured on a
    /// card (RDNA 4, PCIe 5).
    static constexpr double kCrossingSeconds = 45e-6;
};

/// How long memories need for one token at the start of a context: segment after segment, in a
/// window the slower side. Where files are read in place, the device's memory is the CPU's.
/// Returns seconds; 0: a bandwidth that the plan needs is not known
double predict_seconds(const PlanFacts& facts, const Bandwidth& bandwidth);

}  // namespace hf
