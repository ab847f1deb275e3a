// What is said about a plan before anything is loaded, and that a load and a run are just so.
#include "libcore/run/plan_facts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "libcore/base/error.h"
#include "libcore/device/host_device.h"
#include "libcore/plan/steps_text.h"
#include "libcore/run/check_plan.h"
#include "libcore/run/load_placed.h"
#include "libcore/run/memory_speed.h"
#include "libcore/run/product_kinds.h"
#include "tests/support/data.h"
#include "tests/support/placements.h"

using namespace hf;
using namespace hf::test;

namespace {

constexpr const char* kExecs[] = {"pcie", "cpu", "split"};
constexpr const char* kSpills[] = {"layers", "ffn"};

Config config_of(int32_t layers, const char* exec = "pcie", const char* spill = "layers") {
    Config config;
    config.memory.gpu_layer_budget = layers;
    config.memory.offload_exec = exec;
    config.memory.spill = spill;
    config.memory.max_seq = 64;
    config.memory.host_headroom_mb = 0;
    return config;
}

/// Calls f for every budget, exec and spill of every model.
void for_every_plan(const std::function<void(const PlanFacts&, HostDevice&, const Config&)>& f) {
    for (const char* name : kPlacedModels) {
        const auto file = open_shared(name);
        const int32_t layers = int32_t(plan_model(file, {}).config.n_layers);
        for (int32_t stay = kAutoLayers; stay <= layers; ++stay)
            for (const char* exec : kExecs)
                for (const char* spill : kSpills) {
                    CAPTURE(name);
                    CAPTURE(stay);
                    CAPTURE(std::string(exec));
                    CAPTURE(std::string(spill));
                    HostDevice device(card(64 << 20));
                    const Config config = config_of(stay, exec, spill);
                    f(plan_facts(file, device, config), device, config);
                }
    }
}

void add(WeightTotals& to, const WeightTotals& more) {
    for (size_t r = 0; r < kResidencies; ++r) {
        to.bytes[r] += more.bytes[r];
        to.tensors[r] += more.tensors[r];
    }
    to.mirrored_bytes += more.mirrored_bytes;
}

/// The first layers spilled; matrices of any size are split.
ModelPlan split_plan(const char* name, Exec exec, uint32_t spilled) {
    ModelPlan plan = plan_model(open_shared(name), {});
    Budget budget;
    budget.exec = exec;
    budget.split_least_bytes = 0;
    DeviceInfo info;
    info.simulated = true;
    place(plan, info, budget, lay_out_layers(plan.config.n_layers, spilled));
    return plan;
}

PlanFacts facts_of(const char* name, int32_t layers, const char* exec) {
    HostDevice device(card(64 << 20));
    return plan_facts(open_shared(name), device, config_of(layers, exec));
}

}  // namespace

TEST_CASE("plan facts: load, session and allocator take what was planned, to the byte") {
    for_every_plan([](const PlanFacts& facts, HostDevice& device, const Config& config) {
        CHECK(facts.refusal == "");
        CHECK_NOTHROW(check_placement(facts.plan));
        CHECK_NOTHROW(check_loaded(facts, device, config, {}));
        CHECK(device.in_use().all_buffers() == 0);
    });
}

TEST_CASE("product kinds: what formats are really multiplied with, not what was asked for") {
    const struct {
        const char* model;
        cpu::Activations wanted;
        cpu::Level level;
        const char* text;
    } rows[] = {
        {"../../models/demo", cpu::Activations::i16, cpu::Level::amx, "f32/avx512vnni"},
        {"../../models/demo", cpu::Activations::i16, cpu::Level::scalar, "f32/scalar"},
        {"gguf/tiny_llama.q8_0.gguf", cpu::Activations::f32, cpu::Level::avx2, "f32/avx2"},
        {"gguf/tiny_llama.q8_0.gguf", cpu::Activations::i16, cpu::Level::avx2, "i16/avx2"},
        {"gguf/tiny_qwen35_a.q8_0.gguf", cpu::Activations::int8, cpu::Level::scalar, "int8/scalar"},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row.model));
        CAPTURE(std::string(row.text));
        DeviceOptions options = card(64 << 20);
        options.activations = row.wanted;
        HostDevice device(options);
        const PlanFacts facts = plan_facts(open_shared(row.model), device, config_of(kAutoLayers));
        DeviceInfo info = device.info();
        info.level = row.level;
        const auto kinds = product_kinds(facts.plan, info);
        CHECK(product_text(kinds) == std::string(row.text));
        uint64_t bytes = 0, matrices = facts.of_model.reads.all();
        for (const ProductKind& k : kinds) bytes += k.bytes;
        for (const LayerFacts& l : facts.layers) matrices += l.reads.all();
        CHECK(bytes == matrices);
        info.kind = "hip";  // a card multiplies what it holds
        CHECK(product_text(product_kinds(facts.plan, info)) == "");
    }
}

TEST_CASE("product kinds: where formats differ there are several, most bytes first") {
    for (const bool most_are_f32 : {false, true}) {
        PlanFacts facts = facts_of("gguf/tiny_qwen3.q8_0.gguf", kAutoLayers, "pcie");
        for (Step& step : facts.plan.steps)
            if (is_product(step.op) && (step.layer == 0) != most_are_f32)
                step.params.activations = cpu::Activations::f32;
            else if (is_product(step.op))
                step.params.activations = cpu::Activations::i16;
        facts.device.level = cpu::Level::avx2;
        CHECK(product_text(product_kinds(facts.plan, facts.device)) ==
              std::string(most_are_f32 ? "f32/avx2 and i16/avx2" : "i16/avx2 and f32/avx2"));
    }
}

TEST_CASE("plan facts: layers, places and formats add up to the totals") {
    for_every_plan([](const PlanFacts& facts, HostDevice&, const Config&) {
        WeightTotals sum = facts.of_model.totals;
        for (const LayerFacts& l : facts.layers) add(sum, l.totals);
        CHECK(sum == facts.totals);
        uint64_t placed = 0, tensors = 0, matrices = 0;
        for (const PlaceFacts& p : facts.places) placed += p.bytes, tensors += p.tensors;
        for (const FormatPlaces& p : facts.formats)
            matrices += p.bytes[0] + p.bytes[1] + p.bytes[2];
        CHECK(placed == facts.totals.all_bytes());
        CHECK(tensors ==
              facts.totals.tensors[0] + facts.totals.tensors[1] + facts.totals.tensors[2]);
        CHECK(placed == matrices + facts.vector_bytes + facts.sidecar_bytes);
        CHECK(facts.pad_bytes == facts.totals.tensors[1] * kHostSlack);
        CHECK(facts.coverage.spilled == facts.plan.layout.spilled());
    });
}

TEST_CASE("plan facts: a token reads and copies what was foreseen") {
    const SessionOptions options{64, kv_type_by_name("f16"), 1};
    for (const char* name : kPlacedModels)
        for (const Exec exec : {Exec::device, Exec::cpu, Exec::split})
            for (uint32_t spilled = 0; spilled <= 2; ++spilled) {
                CAPTURE(name);
                CAPTURE(spilled);
                CAPTURE(std::string(name_of(exec)));
                HostDevice device(card(64 << 20));
                const PlanFacts facts =
                    describe_plan(split_plan(name, exec, spilled), device, options);
                CHECK_NOTHROW(check_placement(facts.plan));
                const Model model = load_model(split_plan(name, exec, spilled), device, {});
                Session session(model, device, options);
                const int32_t id = 1;
                const uint32_t row = 0;
                session.forward({&id, 1}, {&row, 1});
                const PassFacts& pass = facts.pass(TokenClass::one);
                CHECK(pass.reads.all() == session.bytes_moved());
                CHECK(pass.crossings == session.counts().crossings);
                CHECK(pass.bytes_up == session.counts().bytes_up);
                CHECK(pass.bytes_down == session.counts().bytes_down);
                uint64_t copied = facts.of_model.bytes_copied;
                for (const LayerFacts& l : facts.layers) copied += l.bytes_copied;
                CHECK(copied == pass.bytes_up + pass.bytes_down);
                if (exec == Exec::split && spilled > 0) CHECK(pass.reads.link > 0);
                if (exec == Exec::split && spilled > 0) CHECK(pass.reads.cpu > pass.reads.link);
            }
}

TEST_CASE("plan facts: spilled bytes are read over the link or by the CPU, as exec says") {
    for_every_plan([](const PlanFacts& facts, HostDevice&, const Config& config) {
        const std::string& exec = config.memory.offload_exec;
        Reads reads;
        uint64_t pinned = 0;
        uint32_t products = 0;
        for (const LayerFacts& l : facts.layers) {
            reads += l.reads;
            pinned += l.totals.bytes[size_t(Residency::host_mapped)];
            products += l.cpu_products;
            CHECK((l.residency == Residency::device) == (l.reads.link + l.reads.cpu == 0));
        }
        CHECK(reads.link + reads.cpu == pinned);
        if (exec == "pcie") CHECK(reads.cpu == 0);
        if (exec == "pcie") CHECK(products == 0);
        if (exec == "cpu") CHECK(reads.link == 0);
        if (exec != "pcie") CHECK((products > 0) == (pinned > 0));
        CHECK(facts.pass(TokenClass::prompt).crossings <= facts.pass(TokenClass::one).crossings);
    });
}

TEST_CASE("plan facts: what does not fit is the refusal that loading ends in") {
    const auto file = open_shared("models/tiny_qwen35_a");
    HostDevice device(card(1 << 20));
    const Config config = config_of(4);
    const PlanFacts facts = plan_facts(file, device, config);
    CHECK(facts.need.missing() > 0);
    CHECK(facts.refusal.find(std::to_string(facts.need.missing())) != std::string::npos);
    std::string said;
    try {
        load_placed(file, device, config, 1, {});
    } catch (const Error& error) {
        said = error.what();
    }
    CHECK(said != "");
    CHECK(facts.refusal.starts_with(said));
    CHECK(facts.layers.size() == 4);
}

TEST_CASE("plan facts: a load that is not as planned is an error with both numbers") {
    const struct {
        const char* what;
        std::function<void(PlanFacts&)> change;
    } changes[] = {
        {"on the device", [](PlanFacts& f) { f.totals.bytes[0] += 1; }},
        {"pinned", [](PlanFacts& f) { f.totals.bytes[1] -= 1; }},
        {"ordinary", [](PlanFacts& f) { f.totals.bytes[2] += 1; }},
        {"mirrored", [](PlanFacts& f) { f.totals.mirrored_bytes += 4; }},
        {"pinned tensors", [](PlanFacts& f) { f.totals.tensors[1] += 1; }},
        {"slack", [](PlanFacts& f) { f.pad_bytes -= 1; }},
        {"session on the device", [](PlanFacts& f) { f.session.device_bytes += 1; }},
        {"session in host memory", [](PlanFacts& f) { f.session.host_bytes += 1; }},
    };
    const auto file = open_shared("models/tiny_llama");
    const Config config = config_of(1, "cpu");
    for (const auto& change : changes) {
        CAPTURE(std::string(change.what));
        HostDevice device(card(64 << 20));
        PlanFacts facts = plan_facts(file, device, config);
        change.change(facts);
        CHECK_THROWS_AS(check_loaded(facts, device, config, {}), Error);
        CHECK(device.in_use().all_buffers() == 0);
    }
    DeviceOptions skewed = card(64 << 20);
    skewed.faults.skew_allocation = 3;
    HostDevice device(skewed);
    const PlanFacts facts = plan_facts(file, device, config);
    CHECK_THROWS_WITH_AS(check_loaded(facts, device, config, {}), doctest::Contains("counts"),
                         Error);
}

TEST_CASE("plan facts: a weight that is placed against the rules is named") {
    const auto first = [](PlanFacts& f, Role role, uint32_t layer) -> Weight& {
        for (PlannedWeight& p : f.plan.weights)
            if (p.source.row->role == role && p.source.layer == layer) return *p.weight;
        throw std::runtime_error("no such weight");
    };
    const struct {
        const char* says;
        const char* exec;
        Role role;
        uint32_t layer;
        std::function<void(Weight&)> change;
    } rules[] = {
        {"stays on the device", "pcie", Role::ffn_up, 0,
         [](Weight& w) { w.residency = Residency::device; }},
        {"does not belong", "pcie", Role::ffn_up, 1,
         [](Weight& w) { w.residency = Residency::host_mapped; }},
        {"does not belong", "pcie", Role::ffn_norm, 0,
         [](Weight& w) { w.residency = Residency::host_mapped; }},
        {"is pinned", "pcie", Role::embedding, Step::kNoLayer,
         [](Weight& w) { w.residency = Residency::host_mapped; }},
        {"is multiplied by the CPU", "cpu", Role::ffn_up, 1, [](Weight& w) { w.exec = Exec::cpu; }},
        {"exec is pcie", "pcie", Role::ffn_up, 0, [](Weight& w) { w.exec = Exec::cpu; }},
        {"ordinary memory", "cpu", Role::ffn_up, 0,
         [](Weight& w) { w.exec = Exec::device, w.residency = Residency::host_plain; }},
        {"outside its rows", "split", Role::ffn_up, 0,
         [](Weight& w) { w.exec = Exec::split, w.split_row = w.shape.rows; }},
        {"outside its rows", "cpu", Role::ffn_up, 0, [](Weight& w) { w.split_row = 8; }},
    };
    for (const auto& rule : rules) {
        CAPTURE(std::string(rule.says));
        PlanFacts facts = facts_of("models/tiny_llama", 1, rule.exec);
        CHECK_NOTHROW(check_placement(facts.plan));
        Weight& w = first(facts, rule.role, rule.layer);
        rule.change(w);
        CHECK_THROWS_WITH_AS(check_placement(facts.plan), doctest::Contains(rule.says), Error);
        CHECK_THROWS_WITH_AS(check_placement(facts.plan), doctest::Contains(w.name.c_str()), Error);
    }
}

TEST_CASE("prediction: bytes over speeds, plus the crossings") {
    const Bandwidth speeds{600e9, 27e9, 45e9};
    const auto near = [](double seconds) { return doctest::Approx(seconds).epsilon(1e-9); };
    const char* const model = "models/tiny_llama";

    const PlanFacts resident = facts_of(model, 2, "pcie");
    const auto& all = resident.pass(TokenClass::one);
    CHECK(all.crossings == 1);  // the embedding's row comes from the host
    const double row = double(all.reads.cpu) / speeds.cpu + Bandwidth::kCrossingSeconds +
                       double(all.bytes_up) / speeds.link;
    CHECK(predict_seconds(resident, speeds) == near(double(all.reads.vram) / speeds.vram + row));

    const PlanFacts pcie = facts_of(model, 1, "pcie");
    const Reads& reads = pcie.pass(TokenClass::one).reads;
    CHECK(reads.link == pcie.totals.bytes[size_t(Residency::host_mapped)]);
    CHECK(predict_seconds(pcie, speeds) ==
          near(double(reads.vram) / speeds.vram + double(reads.link) / speeds.link + row));

    const PlanFacts cpu = facts_of(model, 0, "cpu");
    const PassFacts& pass = cpu.pass(TokenClass::one);
    CHECK(pass.crossings > 4);
    CHECK(predict_seconds(cpu, speeds) ==
          near(double(pass.reads.vram) / speeds.vram + double(pass.reads.cpu) / speeds.cpu +
               double(pass.bytes_up + pass.bytes_down) / speeds.link +
               pass.crossings * Bandwidth::kCrossingSeconds));
}

TEST_CASE("prediction: both sides of a window work at the same time") {
    PlanFacts facts;
    SegmentFacts window;
    window.reads = {0, 27'000'000, 90'000'000};
    facts.passes[0].segments = {window};
    CHECK(predict_seconds(facts, {600e9, 27e9, 45e9}) == doctest::Approx(0.002));
    CHECK(predict_seconds(facts, {600e9, 9e9, 45e9}) == doctest::Approx(0.003));
}

TEST_CASE("prediction: without a speed that it needs there is none; in place it is the CPU's") {
    const PlanFacts pcie = facts_of("models/tiny_qwen35_a", 1, "pcie");
    CHECK(predict_seconds(pcie, {600e9, 27e9, 45e9}) > 0);
    CHECK(predict_seconds(pcie, {0, 27e9, 45e9}) == 0);
    CHECK(predict_seconds(pcie, {600e9, 0, 45e9}) == 0);
    HostDevice host({1, cpu::Level::scalar, cpu::Activations::f32});
    Config config;
    config.memory.max_seq = 64;
    const PlanFacts in_place = plan_facts(open_shared("models/tiny_qwen35_a"), host, config);
    CHECK(predict_seconds(in_place, {0, 0, 45e9}) ==
          doctest::Approx(double(in_place.pass(TokenClass::one).reads.all()) / 45e9));
    CHECK(predict_seconds(in_place, {600e9, 27e9, 0}) == 0);
    CHECK_NOTHROW(check_loaded(in_place, host, config, {}));
}

TEST_CASE("prediction: the measured speed of memory is that of some memory") {
    cpu::ThreadPool pool(2);
    const double speed = measure_read_speed(pool);
    CHECK(speed > 1e8);
    CHECK(speed < 1e13);
}

TEST_CASE("steps text: every step stands there once, cut ones on both sides with their rows") {
    HostDevice device(card(64 << 20));
    for (const Exec exec : {Exec::device, Exec::cpu, Exec::split}) {
        const PlanFacts facts = describe_plan(split_plan("models/tiny_qwen35_a", exec, 3), device,
                                              {64, kv_type_by_name("f16"), 1});
        for (size_t c = 0; c < kTokenClasses; ++c) {
            CAPTURE(std::string(name_of(exec)));
            CAPTURE(c);
            const std::string text = steps_text(facts.segments[c], facts.plan.slots, 1, 1);
            const auto count = [&](std::string_view part) {
                size_t n = 0;
                for (size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++n;
                return n;
            };
            CHECK(count("\n") == 1 + facts.segments[c].segments.size() + facts.passes[c].steps);
            CHECK(count("\n  cpu ") == facts.passes[c].cpu_steps);
            const bool has_windows = exec == Exec::split && TokenClass(c) != TokenClass::prompt;
            CHECK((count("both at once") > 0) == has_windows);
            CHECK(count(" rows [0, ") * 2 == count(" rows ["));
            CHECK((count(" rows [") > 0) == has_windows);
            CHECK(count(std::to_string(facts.segments[c].bytes_copied(1, 1)) + " bytes copied") ==
                  1);
            for (const PlannedWeight& p : facts.plan.weights)
                CHECK_MESSAGE(count(p.weight->name) > 0, p.weight->name);
        }
    }
}
