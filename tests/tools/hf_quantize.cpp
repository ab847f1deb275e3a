// hf-quantize as a process: what it writes, what it says, and that nothing stays half done.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/data.h"
#include "tests/tools/process.h"
#include "tests/unit/temp_folder.h"

using namespace hf::test;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

Outcome quantize(std::vector<std::string> arguments, const RunOptions& options = {}) {
    arguments.insert(arguments.begin(), HF_QUANTIZE);
    return run_process(arguments, options);
}

Outcome ask(const std::string& model, const std::string& prompt) {
    return run_process({HF_RUN, model, prompt, "--temp", "0", "--kv", "f32", "-q"});
}

/// A script that may use hf-quantize as $Q, the demo model as $M and an empty folder as ".".
Outcome script(const TempFolder& folder, const std::string& text) {
    return run_process({"/bin/sh", "-c", text},
                       {.environment = {"PATH=/usr/bin:/bin", std::string("Q=") + HF_QUANTIZE,
                                        "M=" + demo_model_path()},
                        .folder = folder.path()});
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("hf-quantize: the demo in four bits is a third of its size and still answers") {
    const TempFolder folder;
    const Outcome run = quantize({demo_model_path(), folder / "x.hfq", "--format", "mq4"});
    CHECK(run.code == 0);
    CHECK(run.err.empty());
    for (const char* part : {"x.hfq: 7.0 MB from", "4.68 bits per weight", "MB/s of 22.6 MB read",
                             "thread", "mq4g256v2", "q8_0", "f16"})
        CHECK_MESSAGE(contains(run.out, part), run.out);
    CHECK(fs::file_size(folder / "x.hfq") < 23'000'000 / 3);
    const Outcome answer = ask(folder / "x.hfq", "What do cows eat?");
    CHECK(answer.code == 0);
    CHECK(contains(answer.out, "grass"));
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("hf-quantize: --json has the numbers of the file") {
    const TempFolder folder;
    const Outcome run = quantize(
        {demo_model_path(), folder / "x.hfq", "--format", "q8", "--json", "--threads", "1"});
    REQUIRE(run.code == 0);
    const Json report = Json::parse(run.out);
    CHECK(report["file_bytes"] == fs::file_size(folder / "x.hfq"));
    CHECK(report["format"] == "q8_0");
    CHECK(report["weights"] == 11'316'488);
    CHECK(report["source_bytes"] == 2 * 11'316'488);
    CHECK(report["threads"] == 1);
    CHECK(report["seconds"] > 0);
    CHECK(report["bits_per_weight"].get<double>() == doctest::Approx(8.53).epsilon(0.01));
    uint64_t bytes = 0;
    for (const Json& format : report["formats"]) bytes += format["bytes"].get<uint64_t>();
    CHECK(report["payload_bytes"] == bytes);
}

TEST_CASE("hf-quantize: a GGUF file is converted, and its numbers stay") {
    const TempFolder folder;
    CHECK(quantize({data_path("gguf/tiny_qwen35_a.q8_0.gguf"), folder / "x.hfq", "--format", "f32"})
              .code == 0);
    const auto answer = [](const std::string& model) {
        return run_process({HF_RUN, model, "--prompt-ids", "5,6,7", "--print-ids", "--max-tokens",
                            "8", "--temp", "0", "--ignore-eos"})
            .out;
    };
    CHECK(answer(folder / "x.hfq") == answer(data_path("gguf/tiny_qwen35_a.q8_0.gguf")));
    CHECK(answer(folder / "x.hfq").size() > 8);
}

TEST_CASE("hf-quantize: --keep changes single tensors, --awq adds scales") {
    const TempFolder folder;
    folder.write("text", "Once upon a time, there was a dragon. The dragon ate an apple.");
    const Outcome run = quantize({demo_model_path(), folder / "x.hfq", "--format", "mq4", "--keep",
                                  "*.down_proj.*=mq6", "--keep", "*embed*=f16", "--awq",
                                  folder / "text", "--json"});
    REQUIRE_MESSAGE(run.code == 0, run.err);
    const Json report = Json::parse(run.out);
    CHECK(report["calibration_tokens"] > 10);
    std::map<std::string, int> tensors;
    for (const Json& format : report["formats"]) tensors[format["format"]] = format["tensors"];
    CHECK(tensors["mq6g256"] == 12);
    CHECK(tensors["mq4g256v2"] == 63);
    CHECK(tensors["f16"] == 67 + 63 + 1);  // vectors, scales, the embedding
    CHECK(contains(ask(folder / "x.hfq", "What do cows eat?").out, "grass"));
}

TEST_CASE("hf-quantize: a file that exists is refused, and replaced with --force") {
    const TempFolder folder;
    folder.write("x.hfq", "old");
    const Outcome refused = quantize({demo_model_path(), folder / "x.hfq", "--format", "mq4"});
    CHECK(refused.code == 4);
    CHECK(contains(refused.err, "--force"));
    CHECK(read_file(folder / "x.hfq") == "old");
    CHECK(quantize({demo_model_path(), folder / "x.hfq", "--format", "mq4", "--force"}).code == 0);
    CHECK(fs::file_size(folder / "x.hfq") > 1'000'000);
    // A model may even take its own place.
    CHECK(quantize({folder / "x.hfq", folder / "x.hfq", "--format", "q8", "--force"}).code == 0);
    CHECK(ask(folder / "x.hfq", "What do cows eat?").code == 0);
}

TEST_CASE("hf-quantize: what it does not understand is exit code 2, and nothing is written") {
    const TempFolder folder;
    const std::string in = demo_model_path(), out = folder / "x.hfq";
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
        {{}, "IN and OUT"},
        {{in}, "IN and OUT"},
        {{in, out}, "--format is missing"},
        {{in, "", "--format", "mq4"}, "OUT is empty"},
        {{"", out, "--format", "mq4"}, "IN is empty"},
        {{"", "--format", "mq4", "--synthetic", "qwen3.5-2b"}, "OUT is empty"},
        {{in, out, "--format", "q4_k_m"}, "mq4g256v2"},
        {{in, out, "--format", "mq4", "--keep", "lm_head"}, "PATTERN=FORMAT"},
        {{in, out, "--format", "mq4", "--keep", "lm_head*=f16"}, "no tensor"},
        {{in, out, "--format", "mq4", "--keep", "*norm*=mq4"}, "no matrix"},
        {{in, out, "--format", "mq4", "--synthetic", "qwen3.5-2b"}, "one, OUT"},
        {{out, "-m", in, "--format", "mq4", "--synthetic", "qwen3.5-3b"}, "qwen3.5-4b"},
        {{out, "--format", "mq4", "--synthetic", "qwen3.5-2b", "--awq", "x"}, "--awq"},
        {{in, out, "--format", "hfq4", "--awq", demo_model_path() + "/README.md"}, "takes none"},
        {{in, out, "--format", "mq4", "--frmat"}, "--frmat"},
    };
    for (const auto& [arguments, part] : cases) {
        const Outcome run = quantize(arguments);
        CAPTURE(run.err);
        CHECK(run.code == 2);
        CHECK(run.out.empty());
        CHECK(contains(run.err, part));
        CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
        CHECK(fs::is_empty(folder.path()));
    }
}

TEST_CASE("hf-quantize: what cannot be read or written is exit code 1 with its name") {
    const TempFolder folder;
    folder.write("text", "not a model");
    fs::create_directory(folder / "folder");
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
        {{folder / "nothing", folder / "x"}, "nothing"},
        {{folder / "text", folder / "x"}, "no model"},
        {{demo_model_path(), folder / "folder"}, "not a regular file"},
        {{demo_model_path(), folder / "missing/x"}, "missing/x"},
        {{demo_model_path(), "/dev/null"}, "not a regular file"},
    };
    for (auto [arguments, part] : cases) {
        arguments.insert(arguments.end(), {"--format", "mq4", "--force"});
        const Outcome run = quantize(arguments);
        CAPTURE(run.err);
        CHECK(run.code == 1);
        CHECK(contains(run.err, part));
    }
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("hf-quantize: text for a model without a tokenizer is refused") {
    const TempFolder folder;
    const Outcome run = quantize({data_path("gguf/tiny_qwen35_a.notok.gguf"), folder / "x.hfq",
                                  "--format", "mq4", "--awq", demo_model_path() + "/eval.txt"});
    CHECK(run.code == 4);
    CHECK(contains(run.err, "no tokenizer"));
}

TEST_CASE("hf-quantize: when the disk is full there is an error and no file") {
    const TempFolder folder;
    const Outcome run = script(folder, "ulimit -f 2000; exec $Q $M x.hfq --format mq4");
    CHECK(run.code == 1);
    CHECK_MESSAGE(contains(run.err, "cannot be written"), run.err);
    CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("hf-quantize: Ctrl-C, or a kind kill, leaves nothing behind") {
    for (const char* signal : {"INT", "TERM"}) {
        const TempFolder folder;
        const Outcome run = script(
            folder,
            "$Q x.hfq --format q8 --synthetic qwen3.5-2b --seed 1 -m $M & pid=$!\n"
            "until ls -l /proc/$pid/fd | grep -q \"$PWD/\"; do sleep 0.01; done; sleep 0.05\n"
            "kill -" +
                std::string(signal) + " $pid; wait $pid");
        CHECK(run.code == 130);
        CHECK(contains(run.err, "nothing was written"));
        CHECK(fs::is_empty(folder.path()));
    }
}

TEST_CASE("hf-quantize: Ctrl-C while a text is read ends it, and a crash leaves nothing either") {
    const TempFolder folder;
    const Outcome calibrating =
        script(folder,
               "mkfifo pipe; sleep 100 >pipe & writer=$!\n"
               "$Q $M x.hfq --format mq4 --awq - <pipe & pid=$!\n"
               "until grep -q SigCgt:.*[2367abef]$ /proc/$pid/status; do sleep 0.01; done\n"
               "sleep 0.2; kill -INT $pid; wait $pid; code=$?; kill $writer; exit $code");
    CHECK(calibrating.code == 130);
    CHECK(contains(calibrating.err, "nothing was written"));
    const Outcome killed =
        script(folder,
               "rm pipe; $Q x.hfq --format q8 --synthetic qwen3.5-2b --seed 1 -m $M & pid=$!\n"
               "until ls -l /proc/$pid/fd | grep -q \"$PWD/\"; do sleep 0.01; done\n"
               "kill -KILL $pid; wait $pid");
    CHECK(killed.code == 128 + 9);
    CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("hf-quantize: --help begins with an example and names the formats") {
    const Outcome run = quantize({"--help"});
    CHECK(run.code == 0);
    CHECK(run.out.starts_with("hf-quantize path/to/folder model.mq4.hfq --format mq4"));
    for (const char* part : {"mq4", "--keep", "--awq", "--synthetic", "qwen3.5-27b", "--force"})
        CHECK(contains(run.out, part));
}
