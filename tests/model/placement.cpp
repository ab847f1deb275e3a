// Where weights go, for every budget of the small models, and that a load is what was planned.
#include "libcore/load/placement.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "libcore/base/error.h"
#include "libcore/exec/session_need.h"
#include "libcore/ops/ops_table.h"
#include "tests/support/data.h"
#include "tests/support/placements.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;

namespace {

constexpr Exec kExecs[] = {Exec::device, Exec::cpu, Exec::split};
constexpr Spill kSpills[] = {Spill::layers, Spill::ffn};
constexpr uint64_t kAmple = 64 << 20;

/// What a card says of itself.
DeviceInfo card_info() {
    DeviceInfo info;
    info.simulated = true;
    return info;
}

Budget fixed(uint32_t layers, Exec exec = Exec::device, Spill spill = Spill::layers) {
    Budget budget;
    budget.layers = Budget::Layers::fixed;
    budget.device_layers = layers;
    budget.exec = exec;
    budget.spill = spill;
    budget.split_least_bytes = 0;
    return budget;
}

ModelPlan placed(const std::shared_ptr<const ModelFile>& file, const Budget& budget,
                 const DeviceInfo& info = card_info()) {
    ModelPlan plan = plan_model(file, {});
    place(plan, info, budget,
          lay_out_layers(plan.config.n_layers,
                         spilled_layers(plan.config.n_layers, budget.device_layers)));
    return plan;
}

/// Calls f for every budget, exec and spill of every model.
void for_every_placement(
    const std::function<void(const std::shared_ptr<const ModelFile>&, const Budget&)>& f) {
    for (const char* name : kPlacedModels) {
        const auto file = open_shared(name);
        const uint32_t layers = plan_model(file, {}).config.n_layers;
        for (uint32_t stay = 0; stay <= layers; ++stay)
            for (const Exec exec : kExecs)
                for (const Spill spill : kSpills) {
                    CAPTURE(name);
                    CAPTURE(stay);
                    CAPTURE(std::string(name_of(exec)));
                    CAPTURE(std::string(name_of(spill)));
                    f(file, fixed(stay, exec, spill));
                }
    }
}

bool is_matrix(const PlannedWeight& p) {
    return p.source.row->use == Use::matrix;
}

bool is_ffn_matrix(const PlannedWeight& p) {
    return p.source.tensor && p.source.tensor->name.find("ffn_") != std::string::npos
               ? p.source.tensor->name.find("norm") == std::string::npos
               : p.source.tensor && p.source.tensor->name.find(".mlp.") != std::string::npos;
}

}  // namespace

TEST_CASE("placement: spilled matrices are those of the prefix, all else stays on the device") {
    for_every_placement([](const auto& file, const Budget& budget) {
        const ModelPlan plan = placed(file, budget);
        const uint32_t spilled = spilled_layers(plan.config.n_layers, budget.device_layers);
        CHECK(plan.layout.spilled() == spilled);
        for (const PlannedWeight& p : plan.weights) {
            CAPTURE(p.weight->name);
            const bool is_spilled = is_matrix(p) && p.source.layer != Step::kNoLayer &&
                                    p.source.layer < spilled &&
                                    (budget.spill == Spill::layers || is_ffn_matrix(p));
            const bool is_table =
                p.source.row->role == Role::embedding && !plan.config.tied_embeddings;
            CHECK(p.weight->residency == (is_spilled ? Residency::host_mapped
                                          : is_table ? Residency::host_plain
                                                     : Residency::device));
            CHECK((p.weight->exec != Exec::device) ==
                  (is_table || (is_spilled && budget.exec != Exec::device)));
            if (p.weight->exec == Exec::split) {
                CHECK(p.weight->split_row == split_row(p.weight->shape.rows, budget.split_share));
                CHECK(p.weight->split_row % 8 == 0);
            } else {
                CHECK(p.weight->split_row == 0);
            }
        }
    });
}

TEST_CASE("placement: what a floating step beside a CPU product reads is mirrored, no state's") {
    for_every_placement([](const auto& file, const Budget& budget) {
        const ModelPlan plan = placed(file, budget);
        std::set<uint32_t> cpu_layers;
        for (const PlannedWeight& p : plan.weights)
            if (p.source.layer != Step::kNoLayer && p.weight->exec != Exec::device)
                cpu_layers.insert(p.source.layer);
        std::set<const Weight*> floating;
        for (const Step& step : plan.steps)
            if (row_of(step.op).place == Place::floating && cpu_layers.contains(step.layer))
                floating.insert(step.w);
        for (const PlannedWeight& p : plan.weights) {
            CAPTURE(p.weight->name);
            if (p.weight->exec != Exec::device) CHECK(p.weight->is_mirrored);
            if (p.weight->is_mirrored && !is_matrix(p)) CHECK(floating.contains(p.weight.get()));
            if (budget.spill == Spill::layers && floating.contains(p.weight.get()))
                CHECK(p.weight->is_mirrored);
            if (p.source.row->role == Role::ffn_norm)
                CHECK(p.weight->is_mirrored == cpu_layers.contains(p.source.layer));
        }
    });
}

TEST_CASE("placement: the sum of bytes is the same for every budget, mirrors apart") {
    std::map<std::string, uint64_t> sums;
    for_every_placement([&](const auto& file, const Budget& budget) {
        const WeightTotals totals = planned_totals(placed(file, budget));
        const uint64_t all = totals.all_bytes();
        CHECK(sums.try_emplace(file->path, all).first->second == all);
        const bool spills = totals.bytes[size_t(Residency::host_mapped)] > 0;
        CHECK(spills == (budget.device_layers < plan_model(file, {}).config.n_layers));
        if (budget.exec == Exec::device) CHECK(totals.mirrored_bytes == 0);
    });
}

TEST_CASE("placement: every way of splitting rows ends at the processor or the device") {
    const auto file = open_shared("models/tiny_qwen35_a");
    Budget budget = fixed(0, Exec::split);
    const auto execs = [&] {
        std::set<Exec> found;
        for (const PlannedWeight& p : placed(file, budget).weights)
            if (p.weight->residency == Residency::host_mapped) found.insert(p.weight->exec);
        return found;
    };
    CHECK(execs() == std::set{Exec::cpu, Exec::split});  // in_proj_a and _b have few rows
    budget.split_share = 0;
    CHECK(execs() == std::set{Exec::cpu});
    budget.split_share = 1;
    CHECK(execs() == std::set{Exec::device});
    budget.split_share = 0.5;
    budget.split_least_bytes = Budget::kSplitLeastBytes;  // all matrices are smaller
    CHECK(execs() == std::set{Exec::cpu});
}

TEST_CASE("placement: unpinned is what only the processor reads") {
    const auto file = open_shared("models/tiny_qwen35_a");
    Budget budget = fixed(2, Exec::cpu);
    budget.pin = false;
    for (const PlannedWeight& p : placed(file, budget).weights)
        if (p.weight->exec == Exec::cpu) CHECK(p.weight->residency == Residency::host_plain);
}

TEST_CASE("placement: a format without a CPU function stays the device's and is named") {
    const auto file = open_shared("models/tiny_qwen35_a");
    for (const Exec exec : {Exec::cpu, Exec::split}) {
        ModelPlan plan = plan_model(file, {});
        Codec bare = *codec_by_name("q8_0"), generic = bare;
        bare.name = "bare";
        bare.cpu.dot = {};
        bare.cpu.decode_row = nullptr;
        generic.name = "generic";
        generic.cpu.dot = {};
        for (PlannedWeight& p : plan.weights) {
            if (p.source.layer == 1 && p.source.row->role == Role::ffn_up) p.weight->codec = &bare;
            if (p.source.layer == 0 && p.source.row->role == Role::ffn_up)
                p.weight->codec = &generic;
        }
        place(plan, card_info(), fixed(1, exec), lay_out_layers(4, 3));
        for (const PlannedWeight& p : plan.weights) {
            if (p.weight->codec == &bare) {
                CHECK(p.weight->exec == Exec::device);
                CHECK(p.weight->residency == Residency::host_mapped);
            }
            if (p.weight->codec == &generic) CHECK(p.weight->exec != Exec::device);
        }
        const Coverage found = coverage(plan);
        CHECK(found.uncovered_tensors == 1);
        CHECK(coverage_line(found) ==
              "cpu exec: 2/3 spilled layers fully covered; uncovered quants: bare; decoded row by "
              "row: generic");
        place(plan, card_info(), fixed(1, exec), lay_out_layers(4, 1));
        CHECK(coverage(plan).uncovered_tensors == 0);
    }
    CHECK(coverage_line(coverage(placed(file, fixed(2, Exec::cpu)))) ==
          "cpu exec: 2/2 spilled layers fully covered; uncovered quants: none");
}

TEST_CASE("placement: a format without a kernel is multiplied by the processor, unpinned") {
    DeviceInfo info = card_info();
    info.multiplies = [](const Codec&) { return false; };
    for (const Exec exec : {Exec::cpu, Exec::split})
        for (const PlannedWeight& p :
             placed(open_shared("models/tiny_llama"), fixed(0, exec), info).weights)
            if (p.source.layer != Step::kNoLayer && is_matrix(p)) {
                CHECK(p.weight->exec == Exec::cpu);
                CHECK(p.weight->residency == Residency::host_plain);
            }
}

TEST_CASE("placement: a device that reads files in place keeps the embedding table") {
    DeviceInfo info = card_info();
    info.in_place = true;
    for (const PlannedWeight& p : placed(open_shared("models/tiny_llama"), fixed(2), info).weights)
        CHECK(p.weight->residency == Residency::device);
}

TEST_CASE("load: plan, load and allocator count the same bytes, for every placement") {
    for_every_placement([](const auto& file, const Budget& budget) {
        HostDevice device(card(kAmple));
        {
            const Model model = load_model(placed(file, budget), device, {});
            const WeightTotals planned = planned_totals(model);
            CHECK(planned == model.stats);
            const MemoryUse use = device.in_use();
            const size_t plain = size_t(Residency::host_plain);
            CHECK(use.bytes[0] == planned.bytes[0]);
            CHECK(use.bytes[1] == planned.bytes[1]);
            CHECK(use.bytes[plain] == planned.mirrored_bytes);
            CHECK(model.stats.in_place[plain] == planned.bytes[plain]);
            CHECK(use.buffers[1] == planned.tensors[1]);
            CHECK(use.slack_bytes == planned.tensors[1] * kHostSlack);
            for (const PlannedWeight& p : model.weights)
                CHECK(p.weight->data.buffer.residency() == p.weight->residency);
        }
        CHECK(device.in_use().all_buffers() == 0);
        CHECK(device.memory().free == kAmple);
    });
}

TEST_CASE("load: over the link the logits are those of the resident model, bit for bit") {
    const std::vector<int32_t> ids = {1, 2, 3, 100, 7};
    const uint32_t rows[] = {0, 4};
    for (const char* name : kPlacedModels) {
        const auto file = open_shared(name);
        std::vector<float> resident;
        const uint32_t layers = plan_model(file, {}).config.n_layers;
        for (uint32_t spilled = 0; spilled <= layers; ++spilled)
            for (const Spill spill : kSpills) {
                HostDevice device(card(kAmple));
                const Model model = load_model(
                    placed(file, fixed(layers - spilled, Exec::device, spill)), device, {});
                Session session(model, device, {64, kv_type_by_name("f16"), 2});
                const auto logits = session.forward(ids, rows);
                if (resident.empty()) resident.assign(logits.begin(), logits.end());
                CHECK(std::ranges::equal(logits, resident));
            }
    }
}

TEST_CASE("load: a session takes what was foreseen, on every model") {
    for (const char* name : kPlacedModels)
        for (const uint32_t max_seq : {1u, 30u, 200u}) {
            HostDevice device(card(kAmple));
            const Model model = load_model(placed(open_shared(name), fixed(1)), device, {});
            const MemoryUse before = device.in_use();
            const SessionOptions options{max_seq, kv_type_by_name("f16"), 3};
            const Session session(model, device, options);
            const SessionNeed need = session_need(model, options);
            CHECK(device.in_use().bytes[0] - before.bytes[0] == need.device_bytes);
            CHECK(device.in_use().bytes[1] + device.in_use().bytes[2] ==
                  before.bytes[1] + before.bytes[2] + need.host_bytes);
        }
}

TEST_CASE("load: a fault at any allocation or upload leaves nothing, and a retry succeeds") {
    const auto file = open_shared("models/tiny_qwen35_b");
    const auto fails = [&](HostDevice& device) {
        try {
            load_model(placed(file, fixed(1, Exec::cpu)), device, {});
        } catch (const Error&) {
            CHECK(device.in_use().all_buffers() == 0);
            CHECK(device.in_use().slack_bytes == 0);
            CHECK(device.memory().free == kAmple);
            return true;
        }
        return false;
    };
    for (uint32_t MemoryFaults::*fault :
         {&MemoryFaults::fail_allocation, &MemoryFaults::fail_upload,
          &MemoryFaults::skew_allocation}) {
        uint32_t n = 0;
        for (bool failed = true; failed; ++n) {
            CAPTURE(n);
            DeviceOptions options = card(kAmple);
            options.faults.*fault = n + 1;
            HostDevice device(options);
            failed = fails(device);
            if (failed) CHECK_FALSE(fails(device));
            REQUIRE(n < 1000);
        }
        CHECK(n > 30);  // one per vector and matrix
    }
}

TEST_CASE("load: embedding, norm, head and layers come in this order, and go in reverse") {
    struct Recorder : HostDevice, BufferOwner {
        using HostDevice::HostDevice;
        std::vector<const std::byte*> given, taken;
        std::map<const std::byte*, Buffer> held;
        size_t most = SIZE_MAX;
        Buffer allocate(uint64_t bytes, Residency residency) override {
            if (given.size() == most) throw Error("out of memory");
            Buffer real = HostDevice::allocate(bytes, residency);
            std::byte* data = real.writable();
            given.push_back(data);
            held[data] = std::move(real);
            return {data, bytes, residency, *this};
        }
        void release(std::byte* data, uint64_t, Residency) noexcept override {
            taken.push_back(data);
        }
    };
    const auto file = open_shared("models/tiny_llama");
    Recorder device(card(kAmple));
    device.most = 15;
    CHECK_THROWS_AS(load_model(placed(file, fixed(1)), device, {}), Error);
    REQUIRE(device.given.size() == 15);
    std::ranges::reverse(device.taken);
    CHECK(device.taken == device.given);

    const ModelPlan plan = placed(file, fixed(1));
    uint32_t at = 0;
    for (const Role role : {Role::embedding, Role::final_norm, Role::head})
        CHECK(plan.weights[at++].source.row->role == role);
    for (uint32_t layer = 0; at + 1 < plan.weights.size(); ++at) {
        CHECK(plan.weights[at].source.layer >= layer);
        layer = plan.weights[at].source.layer;
        CHECK(layer < 2);
    }
}

TEST_CASE("fit: auto keeps the most layers that fit, exactly full is full") {
    const auto file = open_shared("models/tiny_qwen35_a");
    const uint32_t layers = 4;
    const SessionNeed session{123456, 0};
    Budget budget = fixed(0);
    budget.layers = Budget::Layers::automatic;
    for (const Spill spill : kSpills) {
        budget.spill = spill;
        uint64_t previous = 0;
        for (uint32_t stay = 0; stay <= layers; ++stay) {
            const ModelPlan pinned = placed(file, fixed(stay, Exec::device, spill));
            const uint64_t weights = planned_totals(pinned).bytes[0];
            CHECK(weights > previous);
            previous = weights;
            const uint64_t exact = weights + session.device_bytes + device_slack(kAmple);
            for (const uint64_t free : {exact, exact - 1}) {
                ModelPlan plan = plan_model(file, {});
                const DeviceNeed need =
                    place_within(plan, card_info(), {kAmple, free}, budget, session);
                const bool none_fits = stay == 0 && free < exact;
                CHECK(need.fits() == !none_fits);
                CHECK(need.missing() == (none_fits ? 1 : 0));
                const uint32_t expected = none_fits ? 0 : free < exact ? stay - 1 : stay;
                CHECK(plan.layout.spilled() == layers - expected);
            }
        }
    }
}

TEST_CASE("fit: a pin is never widened nor narrowed") {
    const auto file = open_shared("models/tiny_qwen35_a");
    for (uint32_t stay = 0; stay <= 5; ++stay)
        for (const uint64_t free : {uint64_t(1), kAmple}) {
            ModelPlan plan = plan_model(file, {});
            const DeviceNeed need =
                place_within(plan, card_info(), {kAmple, free}, fixed(stay), {});
            CHECK(plan.layout.spilled() == spilled_layers(4, stay));
            CHECK(need.fits() == (free == kAmple));
        }
}

TEST_CASE("fit: where files are read in place, nothing leaves by itself") {
    DeviceInfo info = card_info();
    info.in_place = true;
    ModelPlan plan = plan_model(open_shared("models/tiny_qwen35_a"), {});
    place_within(plan, info, {kAmple, 1}, {}, {});
    CHECK(plan.layout.spilled() == 0);
}

TEST_CASE("fit: the slack is a 64th of the memory, at most 256 MiB") {
    CHECK(device_slack(0) == 0);
    CHECK(device_slack(64 << 20) == 1 << 20);
    CHECK(device_slack(1ull << 34) == 256 << 20);
    CHECK(device_slack(1ull << 40) == 256 << 20);
    for (const uint64_t bytes : {0ull, 1ull, 62ull, 63ull, 64ull, 65ull, 126ull, 127ull, 1ull << 20,
                                 (1ull << 34) - (256 << 20), 1ull << 34, 1ull << 40}) {
        CAPTURE(bytes);
        const uint64_t least = least_device_memory(bytes);
        CHECK(least - device_slack(least) >= bytes);
        if (least > 0) CHECK(least - 1 - device_slack(least - 1) < bytes);
    }
}
