// hf-inspect as people and scripts meet it.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/data.h"
#include "tests/tools/process.h"
#include "tests/tools/texts.h"

using namespace hf::test;
using Json = nlohmann::json;

namespace {

Outcome hf_inspect(std::vector<std::string> arguments, RunOptions options = {}) {
    arguments.insert(arguments.begin(), HF_INSPECT);
    // what is pinned here is small, and so may be the machine
    options.environment.push_back("HIPFIRE_HOST_HEADROOM_MB=0");
    return run_process(arguments, options);
}

Json object_of(std::vector<std::string> arguments, int code = 0) {
    arguments.push_back("--json");
    const Outcome run = hf_inspect(arguments);
    CHECK(run.code == code);
    CHECK(lines_of(run.out).size() == 1);
    return Json::parse(run.out);
}

/// Names of all keys, of objects inside too.
void collect_keys(const Json& json, std::vector<std::string>& keys) {
    for (const auto& [key, value] : json.items()) {
        if (json.is_object()) keys.push_back(key);
        if (value.is_structured()) collect_keys(value, keys);
    }
}

}  // namespace

TEST_CASE("hf-inspect: the page of the bundled model says what it is, without colours in a pipe") {
    const Outcome run = hf_inspect({demo_model_path()});
    CHECK(run.code == 0);
    CHECK(run.err.empty());
    for (const char* part : {"safetensors", "qwen3.5", "12 layers", "3 layers: 4 heads of 64",
                             "9 layers: 2 key heads", "11,316,488", "2048 tokens", "4096 entries",
                             "chatml-trim", "4091, 4093", "bf16", "16.00", "f32: scalar avx2"})
        CHECK_MESSAGE(contains(run.out, part), part);
    CHECK(lines_of(run.out).back() == "  runs");
    CHECK_FALSE(contains(run.out, "\x1b"));
}

TEST_CASE("hf-inspect: --tensors lists every tensor, --scan says that all weights are finite") {
    const std::string path = data_path("gguf/tiny_llama.q4_0.gguf");
    const std::string page = hf_inspect({path, "--tensors", "--scan"}).out;
    const Json object = object_of({path, "--tensors", "--scan"});
    CHECK(object["tensors"].size() == 22);
    for (const Json& t : object["tensors"]) {
        CHECK(contains(page, t["name"].get<std::string>()));
        CHECK(t["used"] == true);
        CHECK(t["file"] == path);
    }
    CHECK(contains(page, "scanned 22 tensors"));
    CHECK(contains(page, "all weights are finite"));
    CHECK(object["scan"]["damaged"].empty());
    CHECK(object["scan"]["tensors"] == 22);
    CHECK_FALSE(object_of({path}).contains("tensors"));
    CHECK_FALSE(object_of({path}).contains("scan"));
}

TEST_CASE("hf-inspect: every key of its JSON is in its manual") {
    const std::string manual = read_file(data_path("../../docs/hf-inspect.md"));
    std::vector<std::string> keys;
    collect_keys(object_of({demo_model_path(), "--tensors", "--scan"}), keys);
    collect_keys(object_of({data_path("models/tiny_qwen35_a")}), keys);
    collect_keys(
        object_of({demo_model_path(), "--vram-mb", "32", "--gpu-layers", "6", "--exec", "cpu",
                   "--bandwidth", "vram=600,link=27,cpu=45", "--sweep", "--steps", "--tensors"}),
        keys);
    CHECK(keys.size() > 200);
    for (const std::string& key : keys) CHECK_MESSAGE(contains(manual, "`" + key + "`"), key);
}

TEST_CASE("hf-inspect: a card is planned, and a load agrees, for every budget and mode") {
    const std::string path = data_path("models/tiny_qwen35_a");
    for (const char* exec : {"pcie", "cpu", "split"})
        for (const char* layers : {"0", "3", "4", "auto"}) {
            CAPTURE(std::string(exec));
            CAPTURE(std::string(layers));
            const std::vector<std::string> flags = {path,
                                                    "--vram-mb",
                                                    "32",
                                                    "--ctx",
                                                    "64",
                                                    "--gpu-layers",
                                                    layers,
                                                    "--exec",
                                                    exec,
                                                    "--set",
                                                    "memory.host_headroom_mb=0",
                                                    "--loaded",
                                                    "-q"};
            const Json plan = object_of(flags)["plan"];
            CHECK(plan["was_loaded"] == true);
            CHECK(plan["device"]["simulated"] == true);
            const bool is_spilled = layers[0] == '0' || layers[0] == '3';
            CHECK((plan["totals"]["host_mapped_bytes"] > 0) == is_spilled);
            CHECK((plan["passes"][0]["crossings"] > 1) ==
                  (is_spilled && std::string_view(exec) != "pcie"));
        }
}

TEST_CASE("hf-inspect: the page has a bar for each layer, a table for each budget, the steps") {
    const Outcome run =
        hf_inspect({demo_model_path(), "--vram-mb", "20", "--gpu-layers", "7", "--exec", "cpu",
                    "--bandwidth", "vram=600,link=27,cpu=45", "--sweep", "--steps"});
    CHECK(run.code == 0);
    const std::string bar(32, '=');
    CHECK(contains(run.out, "  4 linear  " + bar + "      1.6 MiB  8 CPU products"));
    CHECK(contains(run.out, "  5 linear  " + std::string(32, '#')));
    for (const char* part : {"7 of 12 layers stay", "exec cpu", "simulated", "of 20.0 MiB",
                             "crossings", "tokens a second", "45 us a crossing", "tok/s",
                             "pass of 1 token (one)", "pass of 64 tokens (prompt)", "; down x"})
        CHECK_MESSAGE(contains(run.out, part), part);
    CHECK_FALSE(contains(run.out, "\x1b"));
    CHECK(contains(hf_inspect({demo_model_path(), "--vram-mb", "40", "--gpu-layers", "13"}).out,
                   "12 of 12 layers stay, all there are (13 were asked for)\n"));
    CHECK(contains(run.out, ", f32/"));  // bf16 has no integer dots
    const Json sweep =
        object_of({demo_model_path(), "--vram-mb", "20", "--sweep"})["plan"]["sweep"];
    REQUIRE(sweep.size() == 13);
    for (size_t stay = 0; stay < sweep.size(); ++stay) CHECK(sweep[stay]["device_layers"] == stay);
    CHECK(sweep[0]["refusal"].is_null());
    CHECK(sweep[12]["need"]["missing"] > 0);
    CHECK(contains(sweep[12]["refusal"], "gpu_layer_budget"));
}

TEST_CASE("hf-inspect: what --lock would lock is in the plan, without a card and with one") {
    const std::string path = data_path("models/tiny_llama");
    const std::vector<std::string> kPlaces[] = {
        {path}, {path, "--vram-mb", "64", "--gpu-layers", "1", "--exec", "cpu"}};
    for (std::vector<std::string> arguments : kPlaces) {
        CHECK(object_of(arguments)["plan"]["locked_bytes"] == 0);
        CHECK_FALSE(contains(hf_inspect(arguments).out, "locked in memory"));
        arguments.push_back("--lock");
        const Json plan = object_of(arguments)["plan"];
        const bool in_place = plan["reads_in_place"];
        const uint64_t mapped =
            plan["totals"][in_place ? "device_bytes" : "host_plain_bytes"].get<uint64_t>() -
            (in_place ? plan["vector_bytes"].get<uint64_t>() : 0);
        constexpr uint64_t kEdges = 2 * 4096;  // pages that it shares with others
        CHECK(plan["locked_bytes"] >= mapped);
        CHECK(plan["locked_bytes"] <= mapped + kEdges);
        CHECK(contains(hf_inspect(arguments).out, "locked in memory"));
    }
}

TEST_CASE("hf-inspect: a budget that does not fit is a refusal, and an error where it is loaded") {
    const std::vector<std::string> flags = {demo_model_path(), "--vram-mb", "20", "--gpu-layers",
                                            "12"};
    const Json object = object_of(flags);
    CHECK(object["loads"] == false);
    CHECK(object["refusals"][0]["why"] == object["plan"]["refusal"]);
    const std::string page = hf_inspect(flags).out;
    CHECK(contains(page, "  does not load\n"));
    CHECK(contains(page, "refused: "));
    auto loaded = flags;
    loaded.push_back("--loaded");
    CHECK(hf_inspect(loaded).code == 4);
    const Json no_card = object_of({demo_model_path(), "--device", "hip"}, /*code=*/3);
    CHECK(no_card["loads"] == false);
    CHECK(no_card["plan"].is_null());
}

TEST_CASE(
    "hf-inspect: without a card nothing is divided, and layers that should leave are refused") {
    const std::string page =
        hf_inspect({demo_model_path(), "--device", "host", "--exec", "cpu"}).out;
    CHECK(contains(page, "no graphics card, so nothing is divided"));
    CHECK(contains(page, "MiB of memory\n"));
    CHECK_FALSE(contains(page, "device memory"));
    CHECK_FALSE(contains(page, "crossing"));
    const Json object = object_of({demo_model_path(), "--device", "host", "--gpu-layers", "4"});
    CHECK(object["loads"] == false);
    CHECK(contains(object["refusals"][0]["why"], "there is no graphics card"));
    CHECK(object_of({demo_model_path(), "--device", "host", "--gpu-layers", "12"})["loads"]);
}

TEST_CASE("hf-inspect: the CPU's bandwidth is measured when others are given") {
    const Json plan =
        object_of({demo_model_path(), "--vram-mb", "64", "--bandwidth", "vram=600"})["plan"];
    CHECK(plan["prediction"]["is_measured"] == true);
    CHECK(plan["prediction"]["cpu_gb_per_s"] > 0.1);
    CHECK(plan["prediction"]["vram_gb_per_s"] == 600);
    CHECK(plan["prediction"]["tok_per_s"] > 100);
    CHECK(object_of({demo_model_path()})["plan"]["prediction"].is_null());
}

TEST_CASE("hf-inspect: a model without a tokenizer loads, and takes no text") {
    const Json object = object_of({data_path("models/tiny_qwen35_a")});
    CHECK(object["loads"] == true);
    CHECK(object["takes_text"] == false);
    CHECK(object["takes_chat"] == false);
    CHECK(object["tokenizer"].is_null());
    REQUIRE(object["refusals"].size() == 1);
    CHECK(object["refusals"][0]["stops"] == "text");
    const std::string page = hf_inspect({data_path("models/tiny_qwen35_a")}).out;
    CHECK(contains(page, "takes ids, no text\n"));
    CHECK(contains(page, "text: " + object["refusals"][0]["why"].get<std::string>()));
}

TEST_CASE("hf-inspect: a vocabulary without weights is looked at, and does not load") {
    const Json object = object_of({data_path("tokenizers/small_qwen35/vocab.gguf")});
    CHECK(object["loads"] == false);
    CHECK(object["config"].is_null());
    CHECK(object["architecture"] == "qwen3.5");
    CHECK(object["tokenizer"]["entries"].get<int>() > 2000);
    CHECK(object["tokenizer"]["kind"] == "gpt2 qwen35");
}

TEST_CASE("hf-inspect: the cache's format and the context count for the state") {
    const Json f16 = object_of({demo_model_path()});
    const Json f32 = object_of({demo_model_path(), "--kv", "f32", "--ctx", "100"});
    CHECK(f16["context"] == 2048);
    CHECK(f16["kv_cache"] == "f16");
    CHECK(f32["context"] == 100);
    CHECK(f32["state_bytes"] < f16["state_bytes"]);
    CHECK(f32["state_bytes"] >
          object_of({demo_model_path(), "--ctx", "100"})["state_bytes"].get<uint64_t>());
}

TEST_CASE("hf-inspect: what a file says cannot move a terminal's cursor or break the JSON") {
    namespace fs = std::filesystem;
    const fs::path folder = fs::temp_directory_path() / ("hf_inspect_" + std::to_string(getpid()));
    fs::create_directories(folder);
    fs::copy(data_path("models/tiny_qwen35_a/model.safetensors"), folder);
    std::ofstream(folder / "config.json") << R"({"model_type": "\u001b[2Jqwen\n\u0007"})";
    const std::string page = hf_inspect({folder}).out;
    CHECK(contains(page, "?[2Jqwen??"));
    for (const char c : page) CHECK((c == '\n' || c >= ' '));
    CHECK(contains(object_of({folder})["refusals"][0]["why"].get<std::string>(), "?[2Jqwen"));
    fs::remove_all(folder);
}

TEST_CASE("hf-inspect: what is wrong is one line on stderr, with its exit code") {
    const struct {
        std::vector<std::string> arguments;
        int code;
        const char* says;
    } cases[] = {
        {{"/no/such/model"}, 1, "/no/such/model"},
        {{data_path("models/tiny_qwen35_a/model.safetensors")}, 1, "give the folder"},
        {{data_path("codecs/index.json")}, 1, "is no model"},
        {{demo_model_path(), "--no-such-flag"}, 2, "--no-such-flag"},
        {{demo_model_path(), "another"}, 2, "another"},
        {{demo_model_path(), "-m", "/x"}, 2, "both name a model"},
        {{demo_model_path(), "--kv", "q4"}, 2, "f16, f32 or q8"},
        {{demo_model_path(), "--exec", "gpu"}, 2, "pcie, cpu, split"},
        {{demo_model_path(), "--bandwidth", "vram=0"}, 2, "vram=0"},
        {{demo_model_path(), "--bandwidth", "vram=1,disk=2"}, 2, "disk=2"},
        {{demo_model_path(), "--bandwidth", "cpu=x"}, 2, "cpu=X"},
        {{demo_model_path(), "--bandwidth", "cpu=1e-300"}, 2, "cpu=1e-300"},
        {{demo_model_path(), "--bandwidth", "cpu=1,cpu=2"}, 2, "cpu comes twice"},
        {{demo_model_path(), "--bandwidth", "cpu=1,"}, 2, "''"},
        {{demo_model_path(), "--bandwidth", ""}, 2, "''"},
        {{demo_model_path(), "--sweep", "--device", "host"}, 2, "--vram-mb"},
        {{"/no/such/model", "--bandwidth", "cpu"}, 2, "'cpu'"},
        {{demo_model_path(), "--device", "hip", "--vram-mb", "9"}, 2, "vram_mb"},
    };
    for (const auto& c : cases) {
        const Outcome run = hf_inspect(c.arguments);
        CAPTURE(run.err);
        CHECK(run.code == c.code);
        CHECK(run.out.empty());
        CHECK(lines_of(run.err).size() == 1);
        CHECK(run.err.starts_with("hf-inspect: error: "));
        CHECK(contains(run.err, c.says));
    }
}

TEST_CASE("hf-inspect: a reader that left is no error, an output that cannot be written is one") {
    const Outcome left = hf_inspect({demo_model_path(), "--tensors"},
                                    {.on_output = [](pid_t, const std::string&) { return false; }});
    CHECK(left.code == 0);
    CHECK(left.err.empty());
    const Outcome full = hf_inspect({demo_model_path()}, {.stdout_path = "/dev/full"});
    CHECK(full.code == 1);
    CHECK(contains(full.err, "No space left"));
}

TEST_CASE("hf-inspect: --help fits a screen and begins with an example; names are known ones") {
    const Outcome help = hf_inspect({"--help"});
    CHECK(help.code == 0);
    CHECK(lines_of(help.out).size() <= 45);
    CHECK(help.out.starts_with("hf-inspect "));
    for (const char* flag :
         {"--tensors", "--scan", "--json", "--model", "--ctx", "--kv", "--gpu-layers", "--exec",
          "--vram-mb", "--sweep", "--bandwidth", "--loaded"})
        CHECK_MESSAGE(contains(help.out, flag), flag);
    const RunOptions named{
        .environment = {"HIPFIRE_MODELS_DIR=" + data_path("models"), "LC_ALL=de_DE.UTF-8"}};
    CHECK(contains(hf_inspect({"tiny_llama"}, named).out, "architecture  llama"));
    CHECK(contains(hf_inspect({"--list"}, named).out, "tiny_llama"));
}

TEST_CASE("hf-inspect: --coverage prints the page that is kept in docs, and needs no model") {
    const Outcome run =
        hf_inspect({"--coverage", "--speeds", data_path("../../docs/perf/cpu-speeds.txt")});
    CHECK(run.code == 0);
    CHECK(run.err.empty());
    CHECK(run.out == read_file(data_path("../../docs/cpu-coverage.md")));
    CHECK(hf_inspect({"--coverage"}).code == 0);
    for (const char* other : {"--json", "--tensors", "tiny_llama"})
        CHECK(hf_inspect({"--coverage", other}).code == 2);
}
