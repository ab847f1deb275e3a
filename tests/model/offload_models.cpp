// Every way to place the small models, and every pair of ways to place and run the demo in several
// formats: the answer is that of the resident model, to the last bit of every logit.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <tuple>

#include "libcore/load/placement.h"
#include "libcore/quantize/quantize_model.h"
#include "libcore/run/hash.h"
#include "tests/support/data.h"
#include "tests/support/run_model.h"
#include "tests/unit/temp_folder.h"

using namespace hf;
using namespace hf::test;

namespace {

constexpr Exec kExecs[] = {Exec::device, Exec::cpu, Exec::split};
constexpr Spill kSpills[] = {Spill::layers, Spill::ffn};

/// One way to run a model on a pretended card with room for all of it.
struct Way {
    uint32_t device_layers = UINT32_MAX;
    Exec exec = Exec::device;
    Spill spill = Spill::layers;
    unsigned threads = 1;
    cpu::Level level = cpu::detect_level();
    cpu::Activations activations = cpu::Activations::i16;

    std::string text() const {
        return std::to_string(device_layers) + " layers stay, " + std::string(name_of(exec)) +
               ", " + std::string(name_of(spill)) + ", " + std::to_string(threads) + " threads, " +
               std::string(cpu::name(level));
    }
};

struct Answer {
    uint64_t hash;
    LaneCounts counts;
};

/// A prompt, the few tokens behind it, and what is generated: the hash of all ids and logits.
/// Whatever a lane was not sent is NaN.
Answer answer(const std::string& path, const Way& way, std::span<const int32_t> prompt) {
    DeviceOptions card{.threads = way.threads, .level = way.level, .activations = way.activations};
    card.vram_bytes = 256 << 20;
    HostDevice device(card);
    ModelPlan plan = plan_model(std::make_shared<ModelFile>(open_model_file(path, {})),
                                {.tap_layers = {}, .activations = way.activations});
    const uint32_t layers = plan.config.n_layers;
    Budget budget;
    budget.layers = Budget::Layers::fixed;
    budget.device_layers = way.device_layers;
    budget.exec = way.exec;
    budget.spill = way.spill;
    budget.split_least_bytes = 0;
    place(plan, device.info(), budget,
          lay_out_layers(layers, spilled_layers(layers, way.device_layers)));
    const Model model = load_model(std::move(plan), device, {});
    SessionOptions options{64, kv_type_by_name("f16"), Session::kMaxTokens};
    options.lanes.poison_stale = true;
    Session session(model, device, options);

    Fnv1a hash;
    const std::vector<uint32_t> sizes = {12, 3};
    REQUIRE(prompt.size() == 15);
    std::vector<float> logits = run_ids(session, prompt, sizes);
    hash.add(logits);
    for (int i = 0; i < 5; ++i) {
        const std::span<const float> last = std::span(logits).last(model.config.vocab);
        REQUIRE(std::isfinite(last[0]));
        const int32_t id = argmax(last);
        hash.add(std::span(&id, 1));
        logits = run_ids(session, {&id, 1}, std::vector<uint32_t>{1});
        hash.add(logits);
    }
    return {hash.value(), session.counts()};
}

/// Somebody really did what the way says.
void check_counts(const LaneCounts& counts, const Way& way, uint32_t layers) {
    const bool has_spilled = way.device_layers < layers;
    CHECK((counts.cpu_products > 0) == (has_spilled && way.exec != Exec::device));
    CHECK((counts.link_products > 0) == (has_spilled && way.exec == Exec::device));
}

uint32_t layers_of(const std::string& path) {
    return plan_model(std::make_shared<ModelFile>(open_model_file(path, {})), {}).config.n_layers;
}

/// Choices of a value for each parameter, so that every pair of values of two parameters occurs.
/// Greedy: each row takes, of some drawn at random around a pair that is missing, the one with most
/// pairs that are.
std::vector<std::vector<size_t>> all_pairs(const std::vector<size_t>& counts, uint32_t seed) {
    using Pair = std::tuple<size_t, size_t, size_t, size_t>;  // parameter, parameter, value, value
    std::set<Pair> missing;
    for (size_t a = 0; a < counts.size(); ++a)
        for (size_t b = a + 1; b < counts.size(); ++b)
            for (size_t i = 0; i < counts[a]; ++i)
                for (size_t j = 0; j < counts[b]; ++j) missing.insert({a, b, i, j});
    const auto pairs_of = [&](const std::vector<size_t>& row) {
        std::vector<Pair> pairs;
        for (size_t a = 0; a < row.size(); ++a)
            for (size_t b = a + 1; b < row.size(); ++b)
                if (const Pair p = {a, b, row[a], row[b]}; missing.contains(p)) pairs.push_back(p);
        return pairs;
    };
    std::mt19937 draw(seed);
    std::vector<std::vector<size_t>> rows;
    while (!missing.empty()) {
        std::vector<size_t> best;
        for (int tries = 0; tries < 40; ++tries) {
            std::vector<size_t> row;
            for (const size_t n : counts) row.push_back(draw() % n);
            const auto [a, b, i, j] = *missing.begin();
            row[a] = i;
            row[b] = j;
            if (best.empty() || pairs_of(row).size() > pairs_of(best).size()) best = row;
        }
        for (const Pair& p : pairs_of(best)) missing.erase(p);
        rows.push_back(best);
    }
    return rows;
}

std::vector<cpu::Level> levels() {
    std::vector<cpu::Level> found;
    for (size_t l = 0; l < cpu::kLevels; ++l)
        if (cpu::cpu_has(cpu::Level(l))) found.push_back(cpu::Level(l));
    return found;
}

struct Format {
    std::string_view name;
    bool has_awq = false;
};
constexpr Format kFormats[] = {{"f16"}, {"q8"}, {"mq4"}, {"mq3"}, {"mq4v1", true}};

/// The demo model in a format, with scales from a few tokens.
void write_demo(const Format& format, const std::string& to, std::span<const int32_t> ids) {
    const std::atomic<bool> no_interrupt = false;
    const auto file = std::make_shared<ModelFile>(open_model_file(demo_model_path(), {}));
    SquareSums sums;
    if (format.has_awq)
        sums = sum_squares(file, ids, {.threads = 2, .level = cpu::detect_level()}, {}, {},
                           no_interrupt)
                   .value();
    const SourceModel source = open_source_model(file, {});
    cpu::ThreadPool pool(2);
    const auto tensors = plan_output(source, {&format_by_name(format.name), {}}, sums);
    REQUIRE(quantize_model(source, tensors, to, true, pool, {}, no_interrupt));
}

}  // namespace

TEST_CASE("offload: every budget, exec and spill of the small models gives the resident answer") {
    const std::pair<const char*, const char*> models[] = {
        {"models/tiny_qwen35_a", "tiny_qwen35_a"},
        {"models/tiny_qwen35_b", "tiny_qwen35_b"},
        {"models/tiny_qwen3", "tiny_qwen3"},
        {"models/tiny_qwen2", "tiny_qwen2"},
        {"models/tiny_llama", "tiny_llama"},
        {"gguf/tiny_qwen35_b.q4_k_m.gguf", "tiny_qwen35_b"},
        {"gguf/tiny_llama.q4_0.gguf", "tiny_llama"},
    };
    size_t runs = 0;
    for (const auto& [file, folder] : models) {
        const std::string path = data_path(file);
        const auto ids = read_values<int32_t>(
            data_path(std::string("models/") + folder + "/long_input_ids.i32"));
        const std::span<const int32_t> prompt = std::span(ids).first(15);
        const uint64_t want = answer(path, {}, prompt).hash;
        const uint32_t layers = layers_of(path);
        for (uint32_t stay = 0; stay <= layers; ++stay)
            for (const Exec exec : kExecs)
                for (const Spill spill : kSpills) {
                    if (kIsSlowBuild && ++runs % 5 != 0) continue;
                    const Way way = {.device_layers = stay, .exec = exec, .spill = spill};
                    CAPTURE(path);
                    CAPTURE(way.text());
                    const Answer got = answer(path, way, prompt);
                    CHECK(got.hash == want);
                    check_counts(got.counts, way, layers);
                }
    }
}

TEST_CASE("offload: every pair of choices for the demo gives the resident answer of its level") {
    constexpr uint32_t kSeed = 6;
    constexpr unsigned kThreads[] = {1, 2, 5};
    const std::vector<cpu::Level> all_levels = levels();
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 64; ++i) ids.push_back((i * 37 + 11) % 4096);
    const std::span<const int32_t> prompt = std::span(ids).first(15);
    const TempFolder folder;
    for (const Format& format : kFormats)
        write_demo(format, folder / (std::string(format.name) + ".hfq"), ids);

    const uint32_t layers = layers_of(demo_model_path());
    auto rows = all_pairs({std::size(kFormats), layers + 1, std::size(kExecs), std::size(kSpills),
                           std::size(kThreads), all_levels.size()},
                          kSeed);
    CHECK(rows.size() < 2 * std::size(kFormats) * (layers + 1));
    if (kIsSlowBuild) rows.resize(6);
    std::map<std::pair<size_t, size_t>, uint64_t> resident;  // by format and level
    for (const std::vector<size_t>& row : rows) {
        const std::string path = folder / (std::string(kFormats[row[0]].name) + ".hfq");
        const Way way = {.device_layers = uint32_t(row[1]),
                         .exec = kExecs[row[2]],
                         .spill = kSpills[row[3]],
                         .threads = kThreads[row[4]],
                         .level = all_levels[row[5]]};
        CAPTURE(path);
        CAPTURE(way.text());
        const auto [want, is_new] = resident.try_emplace({row[0], row[5]});
        if (is_new) want->second = answer(path, {.level = way.level}, prompt).hash;
        const Answer got = answer(path, way, prompt);
        CHECK(got.hash == want->second);
        check_counts(got.counts, way, layers);
    }
}
