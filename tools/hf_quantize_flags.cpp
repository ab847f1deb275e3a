#include "tools/hf_quantize_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "libcore/base/error.h"
#include "libcore/quantize/policy.h"
#include "libcore/quantize/synthetic.h"
#include "tools/model_argument.h"

namespace hf {
namespace {

constexpr const char* kSummary = "a model to a quantised HFQ file";
constexpr const char* kIntroduction =
    "hf-quantize path/to/folder model.mq4.hfq --format mq4    writes an HFQ file\n"
    "hf-quantize IN OUT --format F    IN: a Hugging Face folder, a GGUF or an HFQ file\n"
    "hf-quantize OUT --format F --synthetic qwen3.5-2b    random weights, for measuring";

std::string format_help() {
    std::vector<std::string_view> names;
    for (const ShortName& row : short_names()) names.push_back(row.name);
    return fmt::format("Format of the matrices: {}, or one of docs/formats.md",
                       fmt::join(names, ", "));
}

void check(const QuantizeFlags& f) {
    if (f.common.explain_config || f.common.list_models) return;
    const size_t wanted = f.synthetic.empty() ? 2 : 1;
    if (f.arguments.size() != wanted)
        throw Error(fmt::format("there are {} arguments; {}", f.arguments.size(),
                                wanted == 2 ? "it takes two, IN and OUT"
                                            : "with --synthetic it takes one, OUT"),
                    Fault::usage);
    for (size_t i = 0; i < wanted; ++i)
        if (f.arguments[i].empty())
            throw Error(fmt::format("{} is empty; name {}", i + 1 < wanted ? "IN" : "OUT",
                                    i + 1 < wanted ? "the model" : "the file to write"),
                        Fault::usage);
    if (f.format.empty())
        throw Error("--format is missing; --format mq4 is a good one for most", Fault::usage);
    if (!f.synthetic.empty() && !f.awq.empty())
        throw Error("--awq needs a model that has learned something; leave out --synthetic",
                    Fault::usage);
}

}  // namespace

std::optional<int> parse_quantize_flags(int argc, const char* const* argv, QuantizeFlags& flags) {
    CLI::App app(kIntroduction, "hf-quantize");
    app.set_help_flag("-h,--help", "This text");
    app.add_option("arguments", flags.arguments, "")->expected(0, 2);
    app.add_option("--format", flags.format, format_help())->type_name("F");
    app.add_option("--keep", flags.keep,
                   "Another format for tensors of such names, as '*.down_proj.weight=mq6'")
        ->type_name("PATTERN=F")
        ->allow_extra_args(false);
    app.add_option("--awq", flags.awq,
                   "Scale columns by what the model's activations are like on this text")
        ->type_name("PATH");
    app.add_option("--synthetic", flags.synthetic,
                   fmt::format("Random weights (--seed) of a real shape: {}",
                               fmt::join(synthetic_sizes(), ", ")))
        ->type_name("SIZE");
    app.add_flag("--force", flags.may_replace, "Replace OUT if it exists");
    app.add_flag("--json", flags.is_json, "Print the report as one JSON object");
    add_common_flags(app, flags.common, {"run.model", "run.seed", "cpu."});
    if (const auto exit_code = parse_flags(app, kSummary, argc, argv)) return exit_code;
    check(flags);
    if (flags.arguments.size() == 2) take_model(flags.common, flags.arguments[0]);
    return std::nullopt;
}

}  // namespace hf
