// What is refused, by name, before one byte is allocated; and that the edges of memory are exact.
#include "libcore/run/refuse.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include "libcore/device/host_device.h"
#include "libcore/exec/session_need.h"
#include "libcore/load/host_fit.h"
#include "libcore/run/load_placed.h"
#include "tests/support/data.h"
#include "tests/support/placements.h"
#include "tests/unit/temp_folder.h"

using namespace hf;
using namespace hf::test;

namespace {

constexpr uint64_t kAmple = 64 << 20;

/// Ends the program when anything is allocated, adopted or uploaded.
struct Untouchable : HostDevice {
    explicit Untouchable(const DeviceOptions& options)
        : HostDevice(options), seen(HostDevice::info()) {}
    const DeviceInfo& info() const override { return seen; }
    Buffer allocate(uint64_t, Residency) override { std::abort(); }
    std::optional<Buffer> adopt(std::span<const std::byte>, Residency) override { std::abort(); }
    void upload(const Buffer&, uint64_t, std::span<const std::byte>) override { std::abort(); }

    DeviceInfo seen;
};

ModelFile open_model(const char* name = "models/tiny_qwen3") {
    return open_model_file(data_path(name), {});
}

std::shared_ptr<const ModelFile> share(ModelFile file) {
    return std::make_shared<const ModelFile>(std::move(file));
}

HostRam ample_ram() {
    return {uint64_t(1) << 40, "a test", true};
}

/// A request that is fine, one layer of two on the card; rows change what they are about.
struct Case {
    Case() {
        config.memory.gpu_layer_budget = 1;
        config.memory.max_seq = 32;
        device.seen.name = "card";
    }
    void add_to_config(const std::string& key, const std::string& json) {
        file.config.insert(file.config.find('{') + 1, "\"" + key + "\": " + json + ",");
    }
    void set_codec(const std::string& part, const Codec& codec) {
        for (TensorView& t : file.tensors)
            if (t.name.find(part) != t.name.npos) t.codec = &codec;
    }

    Config config;
    Untouchable device{card(kAmple)};
    ModelFile file = open_model();
};

Codec made_codec(const char* name, bool has_cpu_functions) {
    Codec codec = *codec_by_name("bf16");
    codec.name = name;
    if (has_cpu_functions) return codec;
    codec.cpu.dot = {};
    codec.cpu.decode_row = nullptr;
    return codec;
}

const Codec kUncovered = made_codec("bare", false), kNoKernel = made_codec("exotic", true);

bool has_kernel(const Codec& codec) {
    return codec.name != "exotic" && codec.name != "bare";
}

struct Row {
    const char* name;  // of the row in the table
    std::function<void(Case&)> change;
    const char *sentence, *hint;
};

void exec(Case& c, const char* word) {
    c.config.memory.offload_exec = word;
}

const Row kRows[] = {
    {"speculation", [](Case& c) { c.config.speculation.mode = "dflash"; },
     "speculation.mode=dflash needs a draft model, and draft models are not supported",
     "speculation.mode = off"},
    {"speculation", [](Case& c) { c.config.speculation.mode = "mtp"; },
     "speculation.mode=mtp verifies in batches, which offloaded layers do not cover",
     "speculation.mode = off"},
    {"speculation", [](Case& c) { c.config.speculation.mode = "ngram"; },
     "speculation.mode=ngram is not built in", "speculation.mode = off"},
    {"PARO",
     [](Case& c) { c.add_to_config("quantization_config", R"({"quant_method": "paroquant"})"); },
     "gpu_layer_budget=1 cannot be honoured: source is PARO (rotation sidecars stay in VRAM)",
     "unset memory.gpu_layer_budget"},
    {"PARO", [](Case& c) { c.file.tensors[0].dtype = "PARO4G128"; },
     "gpu_layer_budget=1 cannot be honoured: source is PARO (rotation sidecars stay in VRAM)",
     "unset memory.gpu_layer_budget"},
    {"experts", [](Case& c) { c.add_to_config("num_experts", "128"); },
     "gpu_layer_budget=1 cannot be honoured: model has 128 experts; expert tensors are not "
     "spillable",
     "unset memory.gpu_layer_budget"},
    {"no card", [](Case& c) { c.device.seen.in_place = true; },
     "gpu_layer_budget=1, but there is no graphics card: card reads all layers in the mapped file",
     "device.vram_mb = 8192 (--vram-mb 8192)"},
    {"unified memory", [](Case& c) { c.device.seen.unified = true; },
     "gpu_layer_budget=1 on unified-memory device 0 (card): spilling frees no VRAM",
     "unset memory.gpu_layer_budget"},
    {"unified memory", [](Case& c) { c.device.seen.name = "Some APU (gfx1151)"; },
     "gpu_layer_budget=1 on unified-memory device 0 (Some APU (gfx1151)): spilling frees no VRAM",
     "unset memory.gpu_layer_budget"},
    {"replay backend",
     [](Case& c) {
         exec(c, "cpu");
         c.config.replay.backend = "redline";
     },
     "offload_exec=cpu with replay.backend=redline: a recorded tape skips CPU steps and replays "
     "stale activations",
     "memory.offload_exec = pcie, or replay.backend = hip"},
    {"replay backend", [](Case& c) { c.config.replay.backend = "redline"; },
     "replay.backend=redline is not built in", "replay.backend = hip"},
    {"no mapped memory", [](Case& c) { c.device.seen.can_map_host = false; },
     "gpu_layer_budget=1: 7 spilled tensors would be mapped for the device, but card cannot read "
     "host memory",
     "memory.offload_exec = cpu with memory.pin = false"},
    {"unpinned", [](Case& c) { c.config.memory.pin = false; },
     "memory.pin=false with offload_exec=pcie: 7 spilled tensors are read by the device, which "
     "needs them pinned",
     "memory.offload_exec = cpu, or memory.pin = true"},
    {"forced graph",
     [](Case& c) {
         exec(c, "cpu");
         c.config.graph.forward = true;
     },
     "offload_exec=cpu with experimental.graph.forward=true: 7 CPU-executed weights present",
     "experimental.graph.forward = auto"},
    {"coverage",
     [](Case& c) {
         exec(c, "cpu");
         c.config.memory.require_coverage = true;
         c.set_codec("layers.0.mlp", kUncovered);
     },
     "3 spilled tensors have no CPU decoder (bare) and memory.require_coverage is set",
     "memory.require_coverage = false"},
    {"no kernel",
     [](Case& c) {
         c.device.seen.multiplies = has_kernel;
         c.set_codec("layers.1.mlp", kNoKernel);
     },
     "card has no kernel for exotic, but is to multiply 3 tensors of that kind, first "
     "'model.layers.1.mlp.gate_proj.weight'",
     "memory.gpu_layer_budget = 0 with memory.offload_exec = cpu"},
    {"no kernel",
     [](Case& c) {
         c.device.seen.multiplies = has_kernel;
         c.set_codec("layers.0.mlp", kUncovered);
     },
     "card has no kernel for bare, but is to multiply 3 tensors of that kind, first "
     "'model.layers.0.mlp.gate_proj.weight'",
     "choose another format"},
};

/// What load_placed refuses with; an empty one when it does not.
struct Refused {
    std::string sentence, hint;
};

template <class Action>
Refused refused(Action&& action) {
    try {
        action();
    } catch (const Refusal& refusal) {
        CHECK(refusal.fault() == Fault::refused);
        CHECK(int(refusal.fault()) == 4);
        return {refusal.what(), refusal.hint()};
    }
    return {};
}

Refused refused(Case& c, const HostRam& ram = ample_ram()) {
    std::vector<std::string> said;
    const Log log{[&](LogLevel, std::string_view line) { said.emplace_back(line); }};
    const Refused r =
        refused([&] { load_placed(share(std::move(c.file)), c.device, c.config, 1, log, ram); });
    CHECK(said.empty());  // no line speaks of a placement that did not happen
    return r;
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("refusals: every row says why and what to change, before one byte is allocated") {
    for (const Row& row : kRows) {
        CAPTURE(std::string(row.name));
        Case c;
        row.change(c);
        const Refused r = refused(c);
        CHECK(r.sentence == std::string("refused: ") + row.sentence);
        CAPTURE(r.hint);
        CHECK(contains(r.hint, row.hint));
        CHECK_FALSE(contains(r.hint, "\n"));
    }
}

TEST_CASE("refusals: each row of the table is reached, and explained in the manual") {
    const std::string manual = read_file(data_path("../../docs/refusals.md"));
    std::set<std::string_view> reached = {"architecture"};  // by a test of its own
    for (const Row& row : kRows) reached.insert(row.name);
    for (const RefusalRow& row : refusal_rows()) {
        CAPTURE(std::string(row.name));
        CHECK(reached.contains(row.name));
        CHECK(contains(manual, "| " + std::string(row.name) + " |"));
    }
    CHECK(reached.size() == refusal_rows().size());
}

TEST_CASE("refusals: when nothing spills, what is only about spilling is not asked") {
    for (const Row& row : kRows) {
        CAPTURE(std::string(row.name));
        const RefusalRow& rule =
            *std::ranges::find(refusal_rows(), std::string_view(row.name), &RefusalRow::name);
        for (const std::optional<int32_t> budget : {std::optional<int32_t>(2), {}}) {
            Case c;
            row.change(c);
            c.config.memory.gpu_layer_budget = budget;
            ModelPlan plan = plan_model(share(std::move(c.file)), {});
            const auto place = [&] {
                place_planned(plan, {c.device.info(), c.device.memory(), ample_ram()}, c.config,
                              session_options(c.config.memory, plan.config, 1));
            };
            CHECK(refused(place).sentence.empty() == rule.needs_spill);
            CHECK(plan.layout.spilled() == 0);
        }
    }
}

TEST_CASE("refusals: layers of an architecture that may not spill stay") {
    Case c;
    ModelPlan plan = plan_model(share(std::move(c.file)), {});
    Architecture fixed = *plan.arch;
    fixed.may_spill = false;
    plan.arch = &fixed;
    const Refused r = refused([&] {
        place_planned(plan, {c.device.info(), c.device.memory(), ample_ram()}, c.config,
                      session_options(c.config.memory, plan.config, 1));
    });
    CHECK(r.sentence ==
          "refused: gpu_layer_budget=1 cannot be honoured: layers of architecture qwen3 are not "
          "spillable");
}

TEST_CASE("refusals: a vision tower stays out of it, and does not keep layers from spilling") {
    Case c;
    c.file = open_model("models/tiny_qwen35_b");
    TensorView tower = c.file.tensors[0];
    tower.name = "model.visual.blocks.0.attn.qkv.weight";
    c.file.tensors.push_back(tower);
    std::ranges::sort(c.file.tensors, {}, &TensorView::name);
    ModelPlan plan = plan_model(share(std::move(c.file)), {});
    place_planned(plan, {c.device.info(), c.device.memory(), ample_ram()}, c.config,
                  session_options(c.config.memory, plan.config, 1));
    CHECK(plan.layout.spilled() > 0);
    for (const PlannedWeight& p : plan.weights) CHECK_FALSE(contains(p.weight->name, "visual"));
}

TEST_CASE("refusals: without require_coverage a format without CPU functions stays the device's") {
    Case c;
    exec(c, "cpu");
    c.set_codec("layers.0.mlp", kUncovered);
    ModelPlan plan = plan_model(share(std::move(c.file)), {});
    place_planned(plan, {c.device.info(), c.device.memory(), ample_ram()}, c.config,
                  session_options(c.config.memory, plan.config, 1));
    CHECK(coverage(plan).uncovered_tensors == 3);
}

TEST_CASE("no memory of its own: unset and auto keep every layer, so that only size is refused") {
    for (const std::optional<int32_t> budget : {std::optional<int32_t>(kAutoLayers), {}}) {
        Case c;
        c.device.seen.unified = true;
        c.config.memory.gpu_layer_budget = budget;
        c.config.memory.max_seq = 128;
        c.config.memory.kv_cache = "f32";
        ModelPlan plan = plan_model(share(std::move(c.file)), {});
        const Refused r = refused([&] {
            place_planned(plan, {c.device.info(), {kAmple, 1000}, ample_ram()}, c.config,
                          session_options(c.config.memory, plan.config, 1));
        });
        CHECK(plan.layout.spilled() == 0);
        CHECK(contains(r.sentence, "2 of 2 layers"));
        CHECK_FALSE(contains(r.hint, "gpu_layer_budget"));
    }
}

TEST_CASE("lines: where layers go, then who multiplies them, in words that scripts read") {
    using Lines = std::vector<std::string>;
    const struct {
        const char* exec;
        int32_t layers;
        Lines said;
        bool is_covered = false;  // then who multiplies is said only when more is asked for
    } rows[] = {
        {"pcie", 1, {"  partial offload: 1 resident / 1 offloaded, i_gpu_start=1"}},
        {"cpu",
         1,
         {"  partial offload: 1 resident / 1 offloaded, i_gpu_start=1",
          "cpu exec: 0/1 spilled layers fully covered; uncovered quants: bare"}},
        {"cpu", 1, {"  partial offload: 1 resident / 1 offloaded, i_gpu_start=1"}, true},
        {"cpu",
         2,
         {"  partial offload: 0 offloaded (2 resident), i_gpu_start=0",
          "cpu exec: nothing is spilled, so nothing changes"}},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row.exec));
        Case c;
        exec(c, row.exec);
        c.config.memory.gpu_layer_budget = row.layers;
        if (!row.is_covered) c.set_codec("layers.0.mlp.up", kUncovered);
        HostDevice device(card(kAmple));
        Lines said;
        Log log{[&](LogLevel, std::string_view line) { said.emplace_back(line); }};
        load_placed(share(std::move(c.file)), device, c.config, 1, log, ample_ram());
        CHECK(said == row.said);
        if (!row.is_covered) continue;
        log.most = LogLevel::debug;
        load_placed(share(open_model()), device, c.config, 1, log, ample_ram());
        CHECK(std::ranges::count(
                  said, "cpu exec: 1/1 spilled layers fully covered; uncovered quants: none") == 1);
    }
}

namespace {

/// The least VRAM for the whole model and a session.
uint64_t least_vram(const Config& config) {
    ModelPlan plan = plan_model(share(open_model()), {});
    const DeviceInfo info = HostDevice(card(kAmple)).info();
    const SessionOptions session = session_options(config.memory, plan.config, 1);
    Config all = config;
    const DeviceNeed need =
        place_planned(plan, {info, {kAmple, kAmple}, ample_ram()}, all, session);
    uint64_t vram = need.weights + need.session;
    while (vram - device_slack(vram) < need.weights + need.session) ++vram;
    return vram;
}

/// The number that a hint gives for a key.
uint64_t hinted(const std::string& hint, const std::string& key) {
    const size_t at = hint.find(key + " = ");
    REQUIRE(at != hint.npos);
    return std::stoull(hint.substr(at + key.size() + 3));
}

}  // namespace

TEST_CASE("device memory: no hint speaks of a card that is pretended where one is there") {
    Case c;
    c.config.memory.gpu_layer_budget = 2;
    c.device.seen.simulated = false;
    ModelPlan plan = plan_model(share(std::move(c.file)), {});
    const Refused r = refused([&] {
        place_planned(plan, {c.device.info(), {1000, 1000}, ample_ram()}, c.config,
                      session_options(c.config.memory, plan.config, 1));
    });
    CHECK(r.hint == "use a smaller model");
}

TEST_CASE("device memory: exactly full loads and runs, one byte less is refused with all numbers") {
    for (const int32_t layers : {0, 1, 2}) {
        CAPTURE(layers);
        Config config;
        config.memory.gpu_layer_budget = layers;
        config.memory.max_seq = 32;
        const uint64_t vram = least_vram(config);
        HostDevice device(card(vram));
        {
            const Model model =
                load_placed(share(open_model()), device, config, 1, {}, ample_ram());
            Session session(model, device, session_options(config.memory, model.config, 1));
            const int32_t id = 1;
            const uint32_t row = 0;
            CHECK(session.forward({&id, 1}, {&row, 1}).size() == model.config.vocab);
            CHECK(device.memory().free == device_slack(vram));
        }
        Untouchable smaller(card(vram - 1));
        const Refused r =
            refused([&] { load_placed(share(open_model()), smaller, config, 1, {}, ample_ram()); });
        CHECK(contains(r.sentence, "but " + std::to_string(vram - 1) + " are free: 1 are missing"));
        CHECK(contains(r.hint, "memory.gpu_layer_budget") == (layers > 0));
        if (layers > 0)
            CHECK(contains(r.hint, "memory.gpu_layer_budget = " + std::to_string(layers - 1)));

        // the card that the hint names is the smallest in MiB that would do
        ModelPlan plan = plan_model(share(open_model()), {});
        const auto place_on = [&](uint64_t mib) {
            place_planned(plan, {smaller.info(), {mib << 20, mib << 20}, ample_ram()}, config,
                          session_options(config.memory, plan.config, 1));
        };
        const uint64_t mib = hinted(r.hint, "device.vram_mb");
        CHECK(refused([&] { place_on(mib); }).sentence == "");
        CHECK(refused([&] { place_on(mib - 1); }).sentence != "");

        // the context that the hint names is the longest that fits
        config.memory.max_seq = uint32_t(hinted(r.hint, "memory.max_seq"));
        const auto place = [&] {
            place_planned(plan, {smaller.info(), smaller.memory(), ample_ram()}, config,
                          session_options(config.memory, plan.config, 1));
        };
        CHECK(refused(place).sentence == "");
        *config.memory.max_seq += 1;
        CHECK(refused(place).sentence != "");
    }
}

TEST_CASE("device memory: a report of too much free memory ends in an error, and leaves nothing") {
    Config config;
    config.memory.max_seq = 32;
    config.memory.gpu_layer_budget = 2;
    const uint64_t vram = least_vram(config);
    for (const uint64_t missing : {vram / 64 + 1, vram / 2, vram - 1}) {
        CAPTURE(missing);
        DeviceOptions options = card(vram - missing);
        options.faults.free_lie = missing;
        HostDevice device(options);
        std::string sentence;
        try {
            const Model model =
                load_placed(share(open_model()), device, config, 1, {}, ample_ram());
            const Session session(model, device, session_options(config.memory, model.config, 1));
        } catch (const Refusal&) {
            FAIL("it was not known before");
        } catch (const Error& error) {
            CHECK(error.fault() == Fault::world);
            sentence = error.what();
        }
        CHECK(contains(sentence, "out of device memory"));
        CHECK(device.in_use().all_buffers() == 0);
        CHECK(device.in_use().slack_bytes == 0);
    }
}

TEST_CASE("host memory: what would be pinned is refused to the byte, with its pads") {
    Case c;
    exec(c, "cpu");
    c.config.memory.host_headroom_mb = 1;
    ModelPlan plan = plan_model(share(open_model()), {});
    const SessionOptions session = session_options(c.config.memory, plan.config, 1);
    place_planned(plan, {c.device.info(), c.device.memory(), ample_ram()}, c.config, session);
    const HostNeed need =
        host_need(planned_totals(plan), plan, c.device.info(), session_need(plan, session));
    CHECK(need.pads == 8 * kHostSlack);  // 7 matrices, and the lane
    CHECK(need.pinned_lane > 0);
    const uint64_t wanted = need.pinned() + (1 << 20);
    HostRam ram{wanted - 1, "a test", true};
    const Refused r = refused(c, ram);
    CHECK(contains(r.sentence, "are available (a test): 1 are missing"));
    CHECK(contains(r.hint, "memory.host_headroom_mb = 0"));
    ram.available = wanted;
    HostDevice device(card(kAmple));
    {
        const Model model = load_placed(share(open_model()), device, c.config, 1, {}, ram);
        CHECK(host_need(model.stats, model, device.info(), session_need(model, session)) == need);
        const MemoryUse before = device.in_use();
        CHECK(before.bytes[size_t(Residency::host_mapped)] == need.pinned_weights);
        CHECK(before.slack_bytes == 7 * kHostSlack);
        const Session running(model, device, session);
        const MemoryUse use = device.in_use();
        CHECK(use.bytes[size_t(Residency::host_mapped)] == need.pinned_weights + need.pinned_lane);
        CHECK(use.slack_bytes == need.pads);
        CHECK(use.bytes[size_t(Residency::host_plain)] == need.plain);
        CHECK(use.bytes[size_t(Residency::device)] == need.device);
    }
    CHECK(device.in_use().all_buffers() == 0);
}

TEST_CASE("host memory: more layers on the device are hinted at only where they would fit") {
    Case c;
    const HostRam ram{5000, "a test", true};
    ModelPlan plan = plan_model(share(std::move(c.file)), {});
    const auto hint = [&](std::optional<int32_t> layers, uint64_t vram, bool is_pretended) {
        c.config.memory.gpu_layer_budget = layers;
        c.device.seen.simulated = is_pretended;
        return refused([&] {
                   place_planned(plan, {c.device.info(), {vram, vram}, ram}, c.config,
                                 session_options(c.config.memory, plan.config, 1));
               })
            .hint;
    };
    Config one = c.config;
    const uint64_t for_one = least_vram(one);
    const std::string other = "set memory.offload_exec = cpu with memory.pin = false";
    CHECK(hint(0, for_one, true) == "set memory.gpu_layer_budget = 1 or auto, or " + other);
    CHECK(hint(1, kAmple, false) == "set memory.gpu_layer_budget = 2 or auto, or " + other);
    for (const std::optional<int32_t> layers : {std::optional<int32_t>(1), {}}) {
        CHECK(hint(layers, for_one, true) == "raise device.vram_mb, or " + other);
        CHECK(hint(layers, for_one, false) == other);
    }
}

TEST_CASE("host memory: a control group that is too small refuses, in both versions") {
    for (const bool is_v2 : {true, false}) {
        CAPTURE(is_v2);
        const TempFolder folder;
        const std::string group = is_v2 ? "cgroup/" : "cgroup/memory/";
        std::filesystem::create_directories(folder / group);
        folder.write("meminfo", "MemAvailable: 99999999 kB\nSwapTotal: 1 kB\n");
        folder.write("own", is_v2 ? "0::/\n" : "3:memory:/\n");
        folder.write(group + (is_v2 ? "memory.max" : "memory.limit_in_bytes"), "9000000\n");
        folder.write(group + (is_v2 ? "memory.current" : "memory.usage_in_bytes"), "1000000\n");
        const HostRam ram = read_host_ram(
            {folder / "meminfo", folder / "statm", {folder / "cgroup", folder / "own"}});
        Case c;
        const Refused r = refused(c, ram);
        CHECK(contains(r.sentence, "but 8000000 are available (" + folder.path()));
        CHECK(contains(r.hint, "memory.host_headroom_mb"));
        CHECK(contains(r.hint, "raise the limit (" + folder.path()));
    }
}

TEST_CASE("host memory: the guard refuses what cannot be had at all, and can be told not to") {
    for (const char* word : {"auto", "on", "off"}) {
        Case c;
        c.config.memory.gpu_layer_budget = 2;
        c.config.memory.oom_guard = word;
        const HostRam ram{1000, "a test", false};
        ModelPlan plan = plan_model(share(std::move(c.file)), {});
        const Refused r = refused([&] {
            place_planned(plan, {c.device.info(), c.device.memory(), ram}, c.config,
                          session_options(c.config.memory, plan.config, 1));
        });
        CHECK(r.sentence.empty() == (std::string(word) == "off"));
        if (!r.sentence.empty()) CHECK(contains(r.hint, "memory.oom_guard = off"));
    }
}

TEST_CASE(
    "unpinned: a device that cannot map, or may not, gets nothing pinned, and the same bits") {
    const std::vector<int32_t> ids = {1, 2, 3, 100, 7};
    const uint32_t rows[] = {0, 4};
    std::vector<float> resident;
    for (const bool can_map_host : {true, false})
        for (const int32_t layers : {2, 1, 0}) {
            CAPTURE(can_map_host);
            CAPTURE(layers);
            DeviceOptions options = card(kAmple);
            options.can_map_host = can_map_host;
            HostDevice device(options);
            Config config;
            config.memory.gpu_layer_budget = layers;
            config.memory.max_seq = 32;
            config.memory.offload_exec = "cpu";
            config.memory.pin = false;
            const Model model = load_placed(share(open_model()), device, config, 2, {}, {});
            Session session(model, device, session_options(config.memory, model.config, 2));
            const auto logits = session.forward(ids, rows);
            if (resident.empty()) resident.assign(logits.begin(), logits.end());
            CHECK(std::ranges::equal(logits, resident));
            CHECK(device.in_use().buffers[size_t(Residency::host_mapped)] == 0);
            CHECK((device.in_use().bytes[size_t(Residency::host_plain)] > 0) == (layers < 2));
        }
}

TEST_CASE("footprint: plan and load give the same, and one session adds up to what fits") {
    for (const char* name : {"models/tiny_qwen3", "models/tiny_qwen35_a", "models/tiny_llama"})
        for (const char* word : {"pcie", "cpu"}) {
            CAPTURE(std::string(name));
            HostDevice device(card(kAmple));
            Config config;
            config.memory.gpu_layer_budget = 1;
            config.memory.max_seq = 32;
            config.memory.offload_exec = word;
            ModelPlan plan = plan_model(share(open_model(name)), {});
            const SessionOptions session = session_options(config.memory, plan.config, 1);
            const DeviceNeed need =
                place_planned(plan, {device.info(), device.memory(), ample_ram()}, config, session);
            const Model model =
                load_placed(share(open_model(name)), device, config, 1, {}, ample_ram());
            const ModelFootprint loaded = footprint(model.stats, model, device.info(), session);
            CHECK(loaded == footprint(planned_totals(plan), plan, device.info(), session));
            CHECK(loaded.weight_bytes == need.weights);
            CHECK(loaded.session_bytes + 32 * loaded.kv_bytes_per_token == need.session);
            CHECK(loaded.pinned_bytes > 0);
        }
}
