// Weights that are read in the mapped file: which ones, in every container and at any address; that
// they are brought into memory, and held there when asked.
#include "libcore/load/mapped_weights.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <numeric>

#include "libcore/base/refusal.h"
#include "libcore/exec/session_need.h"
#include "libcore/load/host_fit.h"
#include "libcore/quantize/quantize_model.h"
#include "libcore/run/load_placed.h"
#include "tests/support/placements.h"
#include "tests/support/resident.h"
#include "tests/support/run_model.h"
#include "tests/unit/temp_folder.h"

using namespace hf;
using namespace hf::test;

namespace {

namespace fs = std::filesystem;

constexpr const char* kUntied = "models/tiny_llama";
constexpr uint64_t kAmple = 64 << 20;
constexpr size_t kMostLocked = 4 << 20;  // more than a small model has
const std::atomic<bool> kNever = false;

HostRam ample_ram() {
    return {uint64_t(1) << 40, "a test", true};
}

/// The folder of a model, but its safetensors file has a header longer by so many spaces.
void copy_shifted(const std::string& model, const std::string& to, size_t spaces) {
    fs::copy(model, to);
    std::string file = read_file(model + "/model.safetensors");
    uint64_t header = 0;
    std::memcpy(&header, file.data(), 8);
    file.insert(8 + header, spaces, ' ');
    header += spaces;
    std::memcpy(file.data(), &header, 8);
    std::ofstream(to + "/model.safetensors", std::ios::binary) << file;
}

void quantize(const std::string& from, const std::string& to, std::string_view format) {
    const SourceModel source =
        open_source_model(std::make_shared<ModelFile>(open_model_file(from, {})), {});
    cpu::ThreadPool pool(1);
    const auto tensors = plan_output(source, {&format_by_name(format), {}}, {});
    REQUIRE(quantize_model(source, tensors, to, true, pool, {}, kNever));
}

uint64_t matrix_bytes(const ModelPlan& plan) {
    uint64_t bytes = 0;
    for (const PlannedWeight& p : plan.weights)
        if (p.source.row->use == Use::matrix) bytes += p.weight->bytes();
    return bytes;
}

std::vector<float> logits_of(const std::string& model) {
    Loaded m(model);
    const std::vector<int32_t> ids = {1, 5, 9, 2, 7, 3};
    const std::vector<uint32_t> sizes = {5, 1};
    return run_ids(m.session, ids, sizes);
}

/// Where a weight lies, as whole pages.
bool holds(const PageRanges& pages, std::span<const std::byte> bytes) {
    return std::ranges::any_of(pages, [&](std::span<const std::byte> range) {
        return range.data() <= bytes.data() &&
               bytes.data() + bytes.size() <= range.data() + range.size();
    });
}

Config with_lock(bool lock) {
    Config config;
    config.memory.max_seq = 32;
    config.memory.lock = lock;
    config.memory.host_headroom_mb = 0;
    return config;
}

}  // namespace

TEST_CASE("in place: every container's matrices are, all of them, and only vectors are copied") {
    const TempFolder folder;
    quantize(data_path(kUntied), folder / "x.hfq", "q8");
    for (const std::string& path :
         {data_path(kUntied), data_path("gguf/tiny_qwen35_b.q4_k_m.gguf"), folder / "x.hfq"}) {
        CAPTURE(path);
        const Loaded m(path);
        const LoadStats& stats = m.model.stats;
        const uint64_t in_place =
            std::accumulate(stats.in_place, stats.in_place + kResidencies, 0ull);
        CHECK(in_place == matrix_bytes(m.model));
        for (const PlannedWeight& p : m.model.weights)
            if (p.source.row->use == Use::matrix)
                CHECK(p.weight->data.buffer.data() == p.source.tensor->bytes.data());
    }
}

TEST_CASE("in place: so are matrices at odd addresses, with the same bits") {
    for (const char* model : {kUntied, "models/tiny_qwen35_a"}) {  // f32 and bf16
        const std::vector<float> expected = logits_of(data_path(model));
        for (const size_t spaces : {1, 2, 5}) {
            CAPTURE(spaces);
            const TempFolder folder;
            copy_shifted(data_path(model), folder / "shifted", spaces);
            const Loaded m(folder / "shifted");
            bool is_odd = false;
            for (const PlannedWeight& p : m.model.weights)
                is_odd |= uintptr_t(p.weight->data.buffer.data()) % 2 == 1;
            CHECK(is_odd == (spaces % 2 == 1));
            CHECK(logits_of(folder / "shifted") == expected);
        }
    }
}

TEST_CASE("lock: it holds what is read in the file, as much as was planned, on every device" *
          doctest::skip(!may_lock(kMostLocked))) {
    const DeviceOptions kDevices[] = {{.threads = 1}, card(kAmple)};
    for (const DeviceOptions& options : kDevices)
        for (const bool pin : {true, false}) {
            CAPTURE(pin);
            HostDevice device(options);
            Config config = with_lock(true);
            if (options.vram_bytes) config.memory.gpu_layer_budget = 1;
            config.memory.offload_exec = "cpu";
            config.memory.pin = pin;
            const uint64_t before = locked_bytes();
            const Model model =
                load_placed(open_shared(kUntied), device, config, 1, {}, ample_ram());
            const PageRanges pages = mapped_pages(model, device.info());
            CHECK(model.lock.bytes() == total_bytes(pages));
            CHECK(locked_bytes() == before + model.lock.bytes());
            for (const PlannedWeight& p : model.weights)
                if (p.source.row->use == Use::matrix)
                    CHECK(holds(pages, p.source.tensor->bytes) == p.weight->data.buffer.in_place());
            const HostNeed need = host_need(model.stats, model, device.info(), {});
            CHECK(need.locked == model.lock.bytes());
            CHECK(need.all() >= need.locked);
        }
    HostDevice device({.threads = 1});
    const Model unlocked =
        load_placed(open_shared(kUntied), device, with_lock(false), 1, {}, ample_ram());
    CHECK(unlocked.lock.bytes() == 0);
    CHECK(host_need(unlocked.stats, unlocked, device.info(), {}).locked == 0);
}

TEST_CASE("lock: more than is allowed is refused before the load, to the byte" *
          doctest::skip(!may_lock(kMostLocked))) {
    HostDevice device({.threads = 1});
    const ModelPlan plan = plan_model(open_shared(kUntied), {});
    const uint64_t wanted = total_bytes(mapped_pages(plan, device.info()));
    HostRam ram = ample_ram();
    const auto load = [&] {
        load_placed(open_shared(kUntied), device, with_lock(true), 1, {}, ram);
        CHECK(device.in_use().all_buffers() == 0);
    };
    ram.lockable = wanted;
    CHECK_NOTHROW(load());
    ram.lockable = wanted - 1;
    CHECK_THROWS_WITH_AS(load(), doctest::Contains("(RLIMIT_MEMLOCK): 1 are missing"), Refusal);
    ram.lockable.reset();
    ram.available = 1000;
    CHECK_THROWS_WITH_AS(load(), doctest::Contains("1000 are available (a test)"), Refusal);
}

TEST_CASE(
    "touch: what a pass reads is in memory before it; an embedding that is no head is not of it") {
    for (const bool lock : {false, true}) {
        if (lock && !may_lock(kMostLocked)) continue;
        CAPTURE(lock);
        HostDevice device({.threads = 2});
        const Model model =
            load_placed(open_shared(kUntied), device, with_lock(lock), 1, {}, ample_ram());
        REQUIRE_FALSE(model.config.tied_embeddings);
        const PageRanges pages = pages_to_touch(model, device.info());
        for (const PlannedWeight& p : model.weights)
            if (p.source.tensor)  // the frequencies have none
                CHECK(holds(pages, p.source.tensor->bytes) ==
                      (lock || p.source.row->role != Role::embedding));
        touch_weights(model, device.info(), ample_ram(), {}, kNever);
        for (const auto range : pages) CHECK(resident_bytes(range) == range.size());
    }
}

TEST_CASE("touch: a model larger than the memory that is left is not touched") {
    const auto touched = [](std::optional<uint64_t> available) {
        HostDevice device({.threads = 2});
        const Model model =
            load_placed(open_shared(kUntied), device, with_lock(false), 1, {}, ample_ram());
        const PageRanges pages = pages_to_touch(model, device.info());
        bool was_touched = false;
        const Progress progress = [&](uint64_t, uint64_t) { was_touched = true; };
        touch_weights(model, device.info(), {available, "a test", false}, progress, kNever);
        return was_touched;
    };
    HostDevice device({.threads = 1});
    const uint64_t bytes =
        total_bytes(pages_to_touch(plan_model(open_shared(kUntied), {}), device.info()));
    CHECK(touched(bytes));
    CHECK_FALSE(touched(bytes - 1));
    CHECK_FALSE(touched({}));
}
