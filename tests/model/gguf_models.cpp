// The tiny models as GGUF files, with the conventions of that format's converters, against logits
// that were computed in float32 from the weights decoded out of the very same file.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/data.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;

namespace {

struct Case {
    std::string name;   // tiny_llama.q4_0
    std::string model;  // tiny_llama
    std::string path(const char* what) const { return data_path("gguf/" + name + "." + what); }
    std::vector<int32_t> prompt() const {
        return read_values<int32_t>(data_path("models/" + model + "/input_ids.i32"));
    }
};

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const auto& entry : std::filesystem::directory_iterator(data_path("gguf"))) {
        const std::string file = entry.path().filename().string();
        if (!file.ends_with(".logits.f32")) continue;
        const std::string name = file.substr(0, file.size() - std::string(".logits.f32").size());
        all.push_back({name, name.substr(0, name.find('.'))});
    }
    std::ranges::sort(all, {}, &Case::name);
    REQUIRE(all.size() >= 7);
    return all;
}

}  // namespace

TEST_CASE("gguf: a prompt has the reference's logits at every position") {
    for (const Case& c : cases()) {
        CAPTURE(c.name);
        Loaded m(c.path("gguf"));
        const auto ids = c.prompt();
        const float worst =
            worst_difference(run_ids(m.session, ids, cut_every(ids.size(), Session::kMaxTokens)),
                             read_values<float>(c.path("logits.f32")));
        MESSAGE(c.name << ": worst difference " << worst);
        CHECK(worst <= 2e-4f);
    }
}

TEST_CASE("gguf: the greedy continuation is the reference's wherever its choice is clear") {
    for (const Case& c : cases()) {
        CAPTURE(c.name);
        Loaded m(c.path("gguf"));
        const auto ids = c.prompt();
        const auto want = read_values<int32_t>(c.path("greedy.i32"));
        const auto margin = read_values<float>(c.path("greedy_margin.f32"));
        const auto logits = run_ids(m.session, ids, cut_every(ids.size(), Session::kMaxTokens));
        const auto got =
            greedy(m.session, argmax(std::span(logits).last(m.model.config.vocab)), want.size());
        for (size_t i = 0; i < want.size(); ++i) {
            if (margin[i] <= 4e-4f) break;  // from a near tie on, both ways are right
            CHECK(got[i] == want[i]);
        }
    }
}
