#include <nlohmann/json.hpp>

#include "libcore/plan/steps_text.h"
#include "tools/device_facts.h"
#include "tools/inspect_plan.h"

namespace hf {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kResidencyNames[kResidencies] = {"device", "host_mapped", "host_plain"};

Json reads_json(const Reads& r) {
    return {{"vram", r.vram}, {"link", r.link}, {"cpu", r.cpu}};
}

Json totals_json(const WeightTotals& t) {
    return {{"device_bytes", t.bytes[0]},        {"host_mapped_bytes", t.bytes[1]},
            {"host_plain_bytes", t.bytes[2]},    {"mirrored_bytes", t.mirrored_bytes},
            {"device_tensors", t.tensors[0]},    {"host_mapped_tensors", t.tensors[1]},
            {"host_plain_tensors", t.tensors[2]}};
}

Json need_json(const PlanFacts& f) {
    return {{"weights", f.need.weights},     {"session", f.need.session},
            {"slack", f.need.slack},         {"needed", f.need.needed()},
            {"available", f.need.available}, {"missing", f.need.missing()}};
}

Json layer_json(const PlanFacts& f, const LayerFacts& l) {
    const bool is_full = f.plan.config.layers[l.layer] == LayerKind::full_attention;
    return {{"layer", l.layer},
            {"kind", is_full ? "full_attention" : "linear_attention"},
            {"residency", kResidencyNames[size_t(l.residency)]},
            {"totals", totals_json(l.totals)},
            {"reads", reads_json(l.reads)},
            {"matrices", l.matrices},
            {"covered", l.covered},
            {"uncovered", l.uncovered},
            {"cpu_products", l.cpu_products},
            {"bytes_copied", l.bytes_copied}};
}

Json pass_json(const PassFacts& p) {
    return {{"class", name_of(p.token_class)},
            {"tokens", p.tokens},
            {"reads", reads_json(p.reads)},
            {"crossings", p.crossings},
            {"bytes_up", p.bytes_up},
            {"bytes_down", p.bytes_down},
            {"steps", p.steps},
            {"cpu_steps", p.cpu_steps},
            {"link_products", p.link_products}};
}

Json places_json(const PlanFacts& f) {
    Json list = Json::array();
    for (const PlaceFacts& p : f.places)
        list.push_back({{"residency", kResidencyNames[size_t(p.residency)]},
                        {"exec", name_of(p.exec)},
                        {"tensors", p.tensors},
                        {"bytes", p.bytes}});
    return list;
}

Json formats_json(const PlanFacts& f) {
    Json list = Json::array();
    for (const FormatPlaces& p : f.formats)
        list.push_back({{"name", p.codec->name},
                        {"device", p.bytes[0]},
                        {"host_mapped", p.bytes[1]},
                        {"host_plain", p.bytes[2]}});
    return list;
}

Json prediction_json(const PlanFacts& f, const PlanView& view) {
    const double seconds = predict_seconds(f, view.bandwidth);
    if (seconds == 0) return {};
    return {{"ms_per_token", seconds * 1e3},
            {"tok_per_s", 1 / seconds},
            {"vram_gb_per_s", view.bandwidth.vram * 1e-9},
            {"link_gb_per_s", view.bandwidth.link * 1e-9},
            {"cpu_gb_per_s", view.bandwidth.cpu * 1e-9},
            {"is_measured", view.is_measured},
            {"crossing_us", Bandwidth::kCrossingSeconds * 1e6}};
}

/// What is the same for a plan and for a row of the sweep.
Json budget_json(const PlanFacts& f, const PlanView& view) {
    const uint32_t spilled = f.plan.layout.spilled();
    return {{"device_layers", f.plan.config.n_layers - spilled},
            {"spilled_layers", spilled},
            {"refusal", f.refusal.empty() ? Json() : Json(f.refusal)},
            {"need", need_json(f)},
            {"totals", totals_json(f.totals)},
            {"pad_bytes", f.pad_bytes},
            {"locked_bytes", f.locked_bytes},
            {"host_session_bytes", f.session.host_bytes},
            {"prediction", prediction_json(f, view)}};
}

}  // namespace

Json plan_json(const PlanView& view) {
    constexpr std::string_view kBudgets[] = {"unset", "auto", "fixed"};
    const PlanFacts& f = view.facts;
    Json object = {{"device", device_json(f.device, product_kinds(f.plan, f.device))},
                   {"reads_in_place", f.device.in_place},
                   {"budget", kBudgets[size_t(f.plan.budget.layers)]},
                   {"spill", name_of(f.plan.budget.spill)},
                   {"exec", name_of(f.plan.budget.exec)},
                   {"split_share", f.plan.budget.split_share}};
    object.update(budget_json(f, view));
    object["lines"] = split_lines(f.plan.config.n_layers, f.plan.layout.spilled(), f.plan.budget);
    object["sidecar_bytes"] = f.sidecar_bytes;
    object["vector_bytes"] = f.vector_bytes;
    object["embedding_bytes"] = f.embedding_bytes;
    object["head_bytes"] = f.head_bytes;
    object["places"] = places_json(f);
    object["places_of_formats"] = formats_json(f);
    object["coverage"] = coverage_line(f.coverage);
    object["passes"] = Json::array();
    for (const PassFacts& p : f.passes) object["passes"].push_back(pass_json(p));
    object["layers"] = Json::array();
    for (const LayerFacts& l : f.layers) object["layers"].push_back(layer_json(f, l));
    object["was_loaded"] = view.was_loaded;
    for (const PlanFacts& row : view.sweep) {
        Json one = budget_json(row, view);
        one["pass"] = pass_json(row.pass(TokenClass::one));
        object["sweep"].push_back(one);
    }
    if (view.shows_steps)
        for (size_t c = 0; c < kTokenClasses; ++c)
            object["steps"].push_back(
                steps_text(f.segments[c], f.plan.slots, f.passes[c].tokens, 1));
    return object;
}

Json place_json(const PlannedWeight& p, const DeviceInfo& device) {
    const Weight& w = *p.weight;
    const bool is_pinned = w.residency == Residency::host_mapped;
    uint64_t sidecars = 0;
    for (const TensorView* t : {p.source.awq_scale, p.source.levels})
        if (t) sidecars += t->dims[0] * sizeof(float);
    return {{"rows", w.shape.rows},
            {"cols", w.shape.cols},
            {"row_bytes", w.codec->row_bytes(w.shape.cols)},
            {"residency", kResidencyNames[size_t(w.residency)]},
            {"exec", name_of(w.exec)},
            {"split_row", w.split_row},
            {"mirrored", has_mirror(p)},
            {"sidecar_bytes", sidecars},
            {"pad_bytes", is_pinned && !device.in_place ? kHostSlack : 0},
            {"covered", is_covered(*w.codec)},
            {"kernel", device.multiplies(*w.codec)}};
}

}  // namespace hf
