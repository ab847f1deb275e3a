// A model of real shapes on a card that is too small for it: as planned, and with the same answer.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "libcore/device/host_device.h"
#include "libcore/quantize/quantize_model.h"
#include "libcore/quantize/synthetic.h"
#include "libcore/run/check_plan.h"
#include "libcore/run/load_placed.h"
#include "tests/support/data.h"
#include "tests/support/run_model.h"
#include "tests/unit/temp_folder.h"

using namespace hf;
using namespace hf::test;
using nlohmann::json;

namespace {

constexpr uint32_t kLayers = 4, kVocab = 4096;

/// The first layers of a synthetic 2B, with a vocabulary as large as its tokenizer: 230 million
/// weights.
SourceModel short_2b() {
    SourceModel model = synthetic_model("qwen3.5-2b", 1, open_model_file(demo_model_path(), {}));
    json metadata = json::parse(model.metadata);
    json& config = metadata["config"];
    config["num_hidden_layers"] = kLayers;
    config["layer_types"].erase(config["layer_types"].begin() + kLayers,
                                config["layer_types"].end());
    config["vocab_size"] = kVocab;
    model.metadata = metadata.dump();
    std::erase_if(model.tensors, [](const SourceTensor& t) {
        const size_t at = t.name.find("layers.");
        return at != t.name.npos && std::stoul(t.name.substr(at + 7)) >= kLayers;
    });
    for (SourceTensor& t : model.tensors)
        if (t.role == Role::embedding) t.shape.rows = t.dims[0] = kVocab;
    return model;
}

void write(const std::string& path) {
    const SourceModel source = short_2b();
    cpu::ThreadPool pool(2);
    const auto tensors = plan_output(source, {&format_by_name("mq4"), {}}, {});
    const std::atomic<bool> no_interrupt = false;
    REQUIRE(quantize_model(source, tensors, path, false, pool, {}, no_interrupt));
}

DeviceOptions card(uint64_t mib) {
    DeviceOptions options;
    options.threads = 2;
    options.level = cpu::detect_level();
    options.vram_bytes = mib << 20;
    return options;
}

/// A prompt, and a few tokens of an answer.
std::vector<float> answer(const PlanFacts& facts, Device& device, const Config& config) {
    const Model model = load_placed(facts.plan.file, device, config, 1, {});
    Session session(model, device, session_options(config.memory, model.config, 1));
    std::vector<int32_t> ids(12);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = int32_t(i * 300 + 5);
    const uint32_t last = uint32_t(ids.size()) - 1, first = 0;
    const auto logits = session.forward(ids, {&last, 1});
    std::vector<float> all(logits.begin(), logits.end());
    session.commit(uint32_t(ids.size()));
    for (int i = 0; i < 3; ++i) {
        const int32_t id = argmax(std::span(all).last(kVocab));
        const auto next = session.forward({&id, 1}, {&first, 1});
        all.insert(all.end(), next.begin(), next.end());
        session.commit(1);
    }
    return all;
}

}  // namespace

TEST_CASE("offload: a model of a 2B's shapes runs on a small card, byte for byte as planned") {
    const TempFolder folder;
    write(folder / "2b.hfq");
    const auto file = std::make_shared<const ModelFile>(open_model_file(folder / "2b.hfq", {}));
    Config config;
    config.memory.max_seq = 256;
    config.memory.host_headroom_mb = 0;
    HostDevice large(card(1024));
    const auto want = answer(plan_facts(file, large, config), large, config);
    CHECK(std::ranges::all_of(want, [](float v) { return std::isfinite(v); }));

    config.memory.gpu_layer_budget = kAutoLayers;
    for (const char* exec : {"pcie", "cpu", "split"}) {
        CAPTURE(std::string(exec));
        config.memory.offload_exec = exec;
        HostDevice device(card(128));
        const PlanFacts facts = plan_facts(file, device, config);
        CHECK(facts.refusal == "");
        const uint32_t spilled = facts.plan.layout.spilled();
        CHECK(spilled > 0);
        CHECK(spilled < kLayers);
        CHECK(facts.need.needed() <= 128 << 20);
        check_placement(facts.plan);
        CHECK_NOTHROW(check_loaded(facts, device, config, {}));
        CHECK(answer(facts, device, config) == want);

        Config more = config;
        more.memory.gpu_layer_budget = int32_t(kLayers - spilled + 1);
        CHECK(plan_facts(file, device, more).need.missing() > 0);
    }
}
