// hf-crosscheck as people and scripts meet it.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/data.h"
#include "tests/tools/process.h"
#include "tests/tools/texts.h"

using namespace hf::test;
using Json = nlohmann::json;

namespace {

Outcome hf_crosscheck(std::vector<std::string> arguments, RunOptions options = {}) {
    arguments.insert(arguments.begin(), HF_CROSSCHECK);
    return run_process(arguments, options);
}

const std::string kText = demo_model_path() + "/eval.txt";

Json object_of(std::vector<std::string> arguments, RunOptions options = {}) {
    arguments.push_back("--json");
    const Outcome run = hf_crosscheck(arguments, options);
    CAPTURE(run.err);
    REQUIRE(run.code == 0);
    return Json::parse(run.out);
}

}  // namespace

TEST_CASE("hf-crosscheck: perplexity of the evaluation text is the golden one") {
    const Json golden = Json::parse(read_file(demo_model_path() + "/golden.json"))["eval"];
    const Json object = object_of({demo_model_path(), "--perplexity", kText, "--tokens",
                                   std::to_string(golden["tokens"].get<int>()), "--kv", "f32"});
    const double want = golden["perplexity"], got = object["perplexity"];
    MESSAGE("perplexity " << got << ", golden " << want);
    CHECK(std::abs(got / want - 1) < 1e-3);
    CHECK(std::log(got) == doctest::Approx(object["mean_nll"].get<double>()).epsilon(1e-12));
    CHECK(object["tokens"] == golden["tokens"]);
    CHECK(object["predicted"] == golden["predicted"]);
    CHECK(object["windows"] == 1);
    CHECK(object["context"] == 2048);
    CHECK(object["device"]["simulated"] == false);
    CHECK(object["text_hash"].get<std::string>().size() == 16);
}

TEST_CASE("hf-crosscheck: a text longer than the context slides, and a pipe is a text too") {
    const Json file = object_of({demo_model_path(), "--perplexity", kText, "--tokens", "300",
                                 "--ctx", "128", "--threads", "1"});
    CHECK(file["windows"] == 4);
    CHECK(file["predicted"] == 299);
    CHECK(file["passes"]["tokens"] == 300 + 3 * 64);
    const Json pipe = object_of({demo_model_path(), "--perplexity", "-", "--tokens", "300", "--ctx",
                                 "128", "--threads", "2"},
                                {.input = read_file(kText)});
    CHECK(pipe["mean_nll"] == file["mean_nll"]);
    CHECK(pipe["text_hash"] == file["text_hash"]);
}

TEST_CASE("hf-crosscheck: the result is on stdout, speed and device on stderr") {
    const Outcome run = hf_crosscheck(
        {demo_model_path(), "--perplexity", kText, "--tokens", "64", "--threads", "1"});
    REQUIRE(lines_of(run.out).size() == 1);
    CHECK(run.out.starts_with("perplexity "));
    CHECK(contains(run.out, "63 of 64 tokens, 1 window"));
    REQUIRE(lines_of(run.err).size() == 1);
    for (const char* part : {"hf-crosscheck: 64 tokens in", "tok/s", "GB/s", "1 thread,", "f16"})
        CHECK_MESSAGE(contains(run.err, part), run.err);
    CHECK_FALSE(contains(run.err, "\x1b"));
    CHECK(hf_crosscheck({demo_model_path(), "--perplexity", kText, "--tokens", "64", "-q"})
              .err.empty());
    CHECK(
        contains(hf_crosscheck({"--perplexity", kText, "--tokens", "010"}).out, "9 of 10 tokens"));
}

TEST_CASE("hf-crosscheck: weights of a model against its own are without error") {
    const std::string q8 = data_path("gguf/tiny_llama.q8_0.gguf");
    const Json same = object_of({q8, "--weights", q8});
    REQUIRE(same["formats"].size() == 1);
    CHECK(same["formats"][0]["relative_error"] == 0);
    const Json q4 = object_of({data_path("gguf/tiny_llama.q4_0.gguf"), "--weights", q8});
    CHECK(q4["check"] == "weights");
    REQUIRE(q4["formats"].size() == 1);
    CHECK(q4["formats"][0]["name"] == "q4_0");
    CHECK(q4["formats"][0]["relative_error"] > 0.01);
    CHECK(q4["formats"][0]["worst_error"] >= q4["formats"][0]["relative_error"]);
    CHECK(contains(hf_crosscheck({q8, "--weights", q8}).out, "relative error 0 over"));
}

TEST_CASE("hf-crosscheck: every key of its JSON is in its manual") {
    const std::string manual = read_file(data_path("../../docs/hf-crosscheck.md"));
    const Outcome run = hf_crosscheck({demo_model_path(), "--weights", demo_model_path(),
                                       "--perplexity", kText, "--tokens", "9", "--json"});
    REQUIRE(lines_of(run.out).size() == 2);
    for (const std::string& line : lines_of(run.out)) {
        Json object = Json::parse(line);
        object.update(object.value("passes", Json::object()));
        if (object.contains("formats")) object.update(object["formats"][0]);
        for (const auto& [key, value] : object.items())
            CHECK_MESSAGE(contains(manual, "`" + key + "`"), key);
    }
}

TEST_CASE("hf-crosscheck: what is wrong is one line on stderr, with its exit code") {
    const std::string demo = demo_model_path(), tiny = data_path("models/tiny_qwen35_a");
    const struct {
        std::vector<std::string> arguments;
        int code;
        const char* says;
    } cases[] = {
        {{demo}, 2, "nothing to check"},
        {{demo, "--perplexity", "/dev/null"}, 2, "/dev/null: has 0 tokens, but 2 must be there"},
        {{demo, "--perplexity", kText, "--tokens", "1"},
         2,
         "eval.txt, of which --tokens takes 1: has 1 token, but 2 must be there"},
        {{demo, "--perplexity", kText, "--tokens", "0"},
         2,
         "--tokens: '0' is not an integer from 1"},
        {{demo, "--perplexity", kText, "--tokens", "1e3"}, 2, "'1e3' is not an integer from 1"},
        {{demo, "--perplexity", kText, "--tokens", "-3"}, 2, "'-3' is not an integer from 1"},
        {{demo, "--perplexity", kText, "--ctx", "1"}, 2, "room for 1 token, but a window takes 2"},
        {{demo, "--perplexity", kText, "--ctx", "4000"}, 2, "2048"},
        {{demo, "-m", "/x", "--perplexity", kText}, 2, "both name a model"},
        {{demo, "--perplexity", "/no/such/text"}, 1, "/no/such/text"},
        {{"/no/such/model", "--perplexity", kText}, 1, "/no/such/model"},
        {{demo, "--weights", tiny}, 1, "not the same model"},
        {{demo, "--perplexity", kText, "--device", "hip"}, 3, "device.kind"},
        {{tiny, "--perplexity", kText}, 4, "no tokenizer"},
    };
    for (const auto& c : cases) {
        const Outcome run = hf_crosscheck(c.arguments);
        CAPTURE(run.err);
        CHECK(run.code == c.code);
        CHECK(run.out.empty());
        CHECK(lines_of(run.err).size() == 1);
        CHECK(run.err.starts_with("hf-crosscheck: error: "));
        CHECK(contains(run.err, c.says));
    }
}

TEST_CASE("hf-crosscheck: an output that cannot be written is an error; --help fits a screen") {
    const Outcome full = hf_crosscheck({demo_model_path(), "--perplexity", kText, "--tokens", "9"},
                                       {.stdout_path = "/dev/full"});
    CHECK(full.code == 1);
    CHECK(contains(full.err, "No space left"));
    const Outcome help = hf_crosscheck({"--help"});
    CHECK(help.code == 0);
    CHECK(lines_of(help.out).size() <= 50);
    CHECK(help.out.starts_with("hf-crosscheck --perplexity"));
    for (const char* flag : {"--perplexity", "--weights", "--tokens", "--json", "--ctx", "--kv"})
        CHECK_MESSAGE(contains(help.out, flag), flag);
}
