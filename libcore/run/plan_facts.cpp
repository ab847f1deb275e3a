#include "libcore/run/plan_facts.h"

#include <algorithm>

#include <fmt/format.h>

#include "libcore/base/refusal.h"
#include "libcore/exec/session_need.h"
#include "libcore/load/host_fit.h"
#include "libcore/ops/ops_table.h"
#include "libcore/run/load_placed.h"

namespace hf {
namespace {

constexpr uint32_t kTypicalTokens[kTokenClasses] = {1, 4, 64};  // by TokenClass

bool is_matrix(const PlannedWeight& p) {
    return p.source.row->use == Use::matrix;
}

/// A matrix's bytes, by who multiplies them for one token.
Reads reads_of(const Weight& w) {
    const uint64_t bytes = w.bytes();
    if (w.exec == Exec::cpu) return {0, 0, bytes};
    if (w.residency == Residency::device) return {bytes, 0, 0};
    if (w.exec == Exec::device) return {0, bytes, 0};
    const uint64_t on_device = w.split_row * w.codec->row_bytes(w.shape.cols);
    return {0, on_device, bytes - on_device};
}

/// What a step reads and writes of weights and state, on the lane that runs it.
Reads reads_of(const Step& step, Lane lane, const Tokens& tokens) {
    const uint64_t bytes = row_of(step.op).bytes(step, tokens);
    if (lane == Lane::cpu) return {0, 0, bytes};
    const bool is_over_link = step.w && step.w->residency != Residency::device;
    return is_over_link ? Reads{0, bytes, 0} : Reads{bytes, 0, 0};
}

struct Collector {
    PlanFacts& facts;
    StateLayout state;
    ArenaLayout arena;

    Tokens tokens(TokenClass c) const {
        Tokens t;
        t.count = kTypicalTokens[size_t(c)];
        t.logit_count = 1;
        t.arena_layout = &arena;
        t.state_layout = &state;
        return t;
    }

    void count_place(Residency residency, Exec exec, uint64_t bytes) {
        const auto same = [&](const PlaceFacts& p) {
            return p.residency == residency && p.exec == exec;
        };
        auto at = std::ranges::find_if(facts.places, same);
        if (at == facts.places.end())
            at = facts.places.insert(at, PlaceFacts{residency, exec, 0, 0});
        at->tensors += 1;
        at->bytes += bytes;
    }

    void count_format(const Weight& w) {
        auto at = std::ranges::find(facts.formats, w.codec, &FormatPlaces::codec);
        if (at == facts.formats.end()) at = facts.formats.insert(at, FormatPlaces{w.codec, {}});
        at->bytes[size_t(w.residency)] += w.bytes();
    }

    LayerFacts& home(uint32_t layer) {
        return layer == Step::kNoLayer ? facts.of_model : facts.layers[layer];
    }

    /// float32 on the device: a vector, or what lies beside a matrix.
    void count_values(const TensorView* values, const PlannedWeight& p, uint64_t& into) {
        if (values) count_values(values->dims[0], p, into);
    }
    void count_values(uint64_t count, const PlannedWeight& p, uint64_t& into) {
        const uint64_t bytes = count * sizeof(float);
        into += bytes;
        count_place(Residency::device, Exec::device, bytes);
        WeightTotals& totals = home(p.source.layer).totals;
        totals.bytes[size_t(Residency::device)] += bytes;
        totals.tensors[size_t(Residency::device)] += 1;
        if (p.weight->is_mirrored) totals.mirrored_bytes += bytes;
    }

    void count_matrix(const PlannedWeight& p) {
        const Weight& w = *p.weight;
        count_place(w.residency, w.exec, w.bytes());
        count_format(w);
        if (p.source.row->role == Role::embedding) facts.embedding_bytes = w.bytes();
        if (p.source.row->role == Role::head) facts.head_bytes = w.bytes();
        LayerFacts& layer = home(p.source.layer);
        layer.totals.bytes[size_t(w.residency)] += w.bytes();
        layer.totals.tensors[size_t(w.residency)] += 1;
        // The table is read by the row, unless it is the head as well.
        if (p.source.row->role != Role::embedding || facts.plan.config.tied_embeddings)
            layer.reads += reads_of(w);
        layer.matrices += 1;
        layer.covered += is_covered(*w.codec);
        if (!is_covered(*w.codec) &&
            std::ranges::find(layer.uncovered, w.codec->name) == layer.uncovered.end())
            layer.uncovered.push_back(w.codec->name);
    }

    void count_weights() {
        const Layout& layout = facts.plan.layout;
        facts.layers.resize(facts.plan.config.n_layers);
        for (uint32_t i = 0; i < facts.layers.size(); ++i) {
            facts.layers[i].layer = i;
            facts.layers[i].residency = layout.layer_residency[i];
        }
        for (const PlannedWeight& p : facts.plan.weights) {
            if (!is_matrix(p)) {
                count_values(p.weight->shape.rows * p.weight->shape.cols, p, facts.vector_bytes);
                continue;
            }
            count_matrix(p);
            count_values(p.source.levels, p, facts.sidecar_bytes);
            count_values(p.source.awq_scale, p, facts.sidecar_bytes);
        }
        std::ranges::sort(facts.places, {},
                          [](const PlaceFacts& p) { return std::pair(p.residency, p.exec); });
    }

    SegmentFacts segment(PassFacts& pass, const Segment& s, const Tokens& t) {
        SegmentFacts found;
        for (const SlotCopy& c : s.up) found.bytes_up += c.bytes(t.rows(c.slot));
        for (const SlotCopy& c : s.down) found.bytes_down += c.bytes(t.rows(c.slot));
        found.crossings = uint32_t(!s.up.empty()) + uint32_t(!s.down.empty());
        for (const Lane lane : {Lane::cpu, Lane::device})
            for (const Step& step : s.on(lane)) {
                const Reads reads = reads_of(step, lane, t);
                found.reads += reads;
                pass.steps += 1;
                pass.cpu_steps += lane == Lane::cpu;
                pass.link_products += is_product(step.op) && reads.link > 0;
            }
        return found;
    }

    PassFacts pass(TokenClass c, const SegmentPlan& plan) {
        const Tokens t = tokens(c);
        PassFacts pass{.token_class = c, .tokens = t.count};
        for (const Segment& s : plan.segments) {
            const SegmentFacts& found = pass.segments.emplace_back(segment(pass, s, t));
            pass.reads += found.reads;
            pass.crossings += found.crossings;
            pass.bytes_up += found.bytes_up;
            pass.bytes_down += found.bytes_down;
        }
        return pass;
    }

    /// Activations that cross count for the layer that waits for them.
    void count_layer_steps(const SegmentPlan& plan, const PassFacts& pass) {
        for (size_t i = 0; i < plan.segments.size(); ++i) {
            const Segment& s = plan.segments[i];
            const auto& steps = s.on(Lane::device).empty() ? s.on(Lane::cpu) : s.on(Lane::device);
            home(steps.empty() ? Step::kNoLayer : steps.front().layer).bytes_copied +=
                pass.segments[i].bytes_up + pass.segments[i].bytes_down;
            for (const Step& step : s.on(Lane::cpu))
                home(step.layer).cpu_products += is_product(step.op);
        }
    }

    void count_passes() {
        for (size_t c = 0; c < kTokenClasses; ++c) {
            facts.segments.push_back(plan_segments(facts.plan.steps, TokenClass(c)));
            facts.passes[c] = pass(TokenClass(c), facts.segments[c]);
        }
        count_layer_steps(facts.segments[0], facts.passes[0]);
    }
};

}  // namespace

Reads& Reads::operator+=(const Reads& more) {
    vram += more.vram;
    link += more.link;
    cpu += more.cpu;
    return *this;
}

PlanFacts describe_plan(ModelPlan plan, const Device& device, const SessionOptions& session) {
    PlanFacts facts;
    facts.plan = std::move(plan);
    facts.device = device.info();
    facts.session = session_need(facts.plan, session);
    facts.need = device_need(facts.plan, device.info(), device.memory(), facts.session);
    facts.totals = planned_totals(facts.plan);
    facts.pad_bytes = facts.totals.tensors[size_t(Residency::host_mapped)] * kHostSlack;
    facts.locked_bytes = host_need(facts.totals, facts.plan, facts.device, facts.session).locked;
    facts.coverage = coverage(facts.plan);
    const StateLayout state = lay_out_session_state(facts.plan, session);
    Collector collector{facts, state,
                        lay_out_arena(facts.plan.slots, state.max_pending, session.max_logits)};
    collector.count_weights();
    collector.count_passes();
    return facts;
}

PlanFacts plan_facts(std::shared_ptr<const ModelFile> file, const Device& device,
                     const Config& config) {
    ModelPlan plan =
        plan_model(std::move(file), {.tap_layers = {}, .activations = device.info().activations});
    const SessionOptions session = session_options(config.memory, plan.config, 1);
    std::string refusal;
    try {
        place_planned(plan, {device.info(), device.memory(), read_host_ram()}, config, session);
    } catch (const Refusal& found) {
        refusal = fmt::format("{}; {}", found.what(), found.hint());
    }
    PlanFacts facts = describe_plan(std::move(plan), device, session);
    facts.refusal = std::move(refusal);
    return facts;
}

double predict_seconds(const PlanFacts& facts, const Bandwidth& bandwidth) {
    const double vram = facts.device.in_place ? bandwidth.cpu : bandwidth.vram;
    bool is_known = true;
    const auto seconds = [&](uint64_t bytes, double speed) {
        is_known = is_known && (bytes == 0 || speed > 0);
        return bytes == 0 ? 0 : double(bytes) / speed;
    };
    double all = 0;
    for (const SegmentFacts& s : facts.pass(TokenClass::one).segments) {
        all += s.crossings * Bandwidth::kCrossingSeconds +
               seconds(s.bytes_up + s.bytes_down, bandwidth.link);
        all += std::max(seconds(s.reads.vram, vram) + seconds(s.reads.link, bandwidth.link),
                        seconds(s.reads.cpu, bandwidth.cpu));
    }
    return is_known ? all : 0;
}

}  // namespace hf
