#include "tools/model_argument.h"

#include <algorithm>

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/run/find_model.h"

namespace hf {

void take_model(CommonFlags& flags, const std::string& argument) {
    if (argument.empty()) return;
    const auto is_model = [](const FlagValue& f) { return f.key == "run.model"; };
    const auto named = std::ranges::find_if(flags.settings, is_model);
    if (named != flags.settings.end())
        throw Error(fmt::format("'{}' and {} {} both name a model; leave one out", argument,
                                named->spelled, named->value),
                    Fault::usage);
    flags.settings.push_back({"run.model", argument, "MODEL"});
}

std::string model_path(const Config& config) {
    return config.run.model.empty() ? bundled_model(program_folder()) : config.run.model;
}

std::string answer_of(const CommonFlags& flags, const Resolved& resolved) {
    if (flags.explain_config) return explain(resolved);
    return flags.list_models ? list_models(resolved) : "";
}

}  // namespace hf
