// How well the demo model predicts its text in each format, against what its README says.
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

#include "libcore/quantize/quantize_model.h"
#include "libcore/run/open_tokenizer.h"
#include "libcore/run/perplexity.h"
#include "tests/support/data.h"
#include "tests/support/run_model.h"
#include "tests/unit/temp_folder.h"

using namespace hf;
using namespace hf::test;

namespace {

constexpr size_t kTokens = 2048;  // of the text; the model has no larger context

/// The last cell of the first row of models/demo/README.md that begins like this.
double stated(const std::string& row) {
    std::istringstream readme(read_file(demo_model_path() + "/README.md"));
    for (std::string line; std::getline(readme, line);) {
        if (!line.starts_with("| " + row)) continue;
        line.resize(line.rfind('|'));
        return std::stod(line.substr(line.rfind('|') + 1));
    }
    throw std::runtime_error("no such row: " + row);
}

double perplexity(const std::string& model) {
    Loaded m(model, {.max_seq = kTokens});
    auto ids = open_tokenizer(*m.model.file)->encode(read_file(demo_model_path() + "/eval.txt"));
    ids.resize(kTokens);
    return std::exp(mean(negative_log_likelihoods(m.session, ids)));
}

}  // namespace

TEST_CASE("perplexity: every format has the one stated for its bits") {
    struct Case {
        std::string_view format;
        const char* row;
    };
    constexpr Case cases[] = {
        {"f16", "bf16 as stored"},
        {"bf16", "bf16 as stored"},
        {"q8", "8 bit, groups of 32"},
        {"mq6", "6 bit, groups of 256"},
        {"hfq4", "4 bit, groups of 256 | 8 bit"},
        {"mq4", "4 bit, groups of 256 | 8 bit"},
        {"mq3", "3 bit, groups of 256"},
    };
    const TempFolder folder;
    const SourceModel source =
        open_source_model(std::make_shared<ModelFile>(open_model_file(demo_model_path(), {})), {});
    const std::atomic<bool> no_interrupt = false;
    cpu::ThreadPool pool(2);
    for (const Case& c : cases) {
        CAPTURE(c.format);
        const auto tensors = plan_output(source, {&format_by_name(c.format), {}}, {});
        REQUIRE(quantize_model(source, tensors, folder / "x.hfq", true, pool, {}, no_interrupt));
        const double found = perplexity(folder / "x.hfq");
        MESSAGE(c.format << ": " << found << ", stated " << stated(c.row));
        CHECK(std::abs(found / stated(c.row) - 1) <= 0.015);  // it rounds in another way
    }
}
