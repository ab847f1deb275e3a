// hf-crosscheck --cpu as people and scripts meet it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/data.h"
#include "tests/tools/process.h"
#include "tests/tools/texts.h"

using namespace hf::test;
using Json = nlohmann::json;

namespace {

Outcome crosscheck_cpu(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {HF_CROSSCHECK, "--cpu"});
    return run_process(arguments);
}

bool is_explained(const std::string& manual, const std::string& word) {
    std::string quoted = word;
    quoted.insert(quoted.begin(), '`');
    quoted.push_back('`');
    return contains(manual, quoted);
}

}  // namespace

TEST_CASE("hf-crosscheck --cpu: every check of this CPU passes, on random weights and a model's") {
    const Outcome run = crosscheck_cpu({data_path("gguf/tiny_qwen35_b.q4_k_m.gguf"), "--json"});
    CHECK(run.err == "");
    REQUIRE(run.code == 0);  // whatever was skipped
    const std::string manual = read_file(data_path("../../docs/hf-crosscheck.md"));
    size_t of_model = 0, of_rotation = 0, scalar_dots = 0;
    for (const std::string& line : lines_of(run.out)) {
        const Json record = Json::parse(line);
        CAPTURE(line);
        CHECK(record["check"] == "cpu");
        CHECK(record["pass"] != record["skipped"]);
        CHECK(record["reason"].get<std::string>().empty() != record["skipped"].get<bool>());
        if (record["pass"] == true) CHECK(record["n"] > 0);
        for (const auto& [key, value] : record.items()) {
            if (!is_explained(manual, key)) FAIL("not in the manual: " << key);
        }
        const std::string name = record["name"];
        if (!is_explained(manual, name.substr(0, name.find('/'))))
            FAIL("not in the manual: " << name);
        of_model += name.starts_with("model-dot/") && record["pass"] == true;
        of_rotation += name.starts_with("rotation/256/");
        scalar_dots += name.starts_with("dot/") && name.ends_with("/scalar/f32");
    }
    CHECK(of_model >= 2);
    CHECK(of_rotation >= 2);
    CHECK(scalar_dots == 56);
}

TEST_CASE(
    "hf-crosscheck --cpu: skipped checks are counted with reasons, and --no-skip minds them") {
    const Outcome run = crosscheck_cpu({"--isa", "scalar", "--no-skip"});
    CHECK(run.code == 5);
    CHECK(contains(run.out, "dot          scalar/f32           56"));
    CHECK(contains(run.out, "the same bits"));
    CHECK(contains(run.out, "highest level asked for"));
    CHECK(contains(lines_of(run.out).back(), "skipped"));
    REQUIRE(lines_of(run.err).size() == 1);
    CHECK(contains(run.err, "could not be made"));
}

TEST_CASE("hf-crosscheck --cpu: what is wrong is one line on stderr, with its exit code") {
    const struct {
        std::vector<std::string> arguments;
        int code;
        const char* says;
    } cases[] = {
        {{"--isa", "mmx"}, 2, "cpu.isa"},
        {{"/no/such/model"}, 1, "/no/such/model"},
    };
    for (const auto& c : cases) {
        const Outcome run = crosscheck_cpu(c.arguments);
        CAPTURE(run.err);
        CHECK(run.code == c.code);
        CHECK(lines_of(run.err).size() == 1);
        CHECK(contains(run.err, c.says));
    }
    const Outcome alone = run_process({HF_CROSSCHECK, "--no-skip"});
    CHECK(alone.code == 2);
    CHECK(contains(alone.err, "--cpu"));
}
