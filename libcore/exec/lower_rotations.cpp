#include "libcore/exec/lower_rotations.h"

#include <fmt/format.h>

#include "libcore/base/error.h"

namespace hf {

std::vector<Step> lower_rotations(std::span<const Step> steps) {
    for (const Step& step : steps)
        if (step.w && (step.w->codec->rotation != Rotation::none || step.w->awq_scale.bytes()))
            throw Error(
                fmt::format("tensor '{}': format {} needs rotated activations, which this "
                            "build cannot make",
                            step.w->name, step.w->codec->name));
    return {steps.begin(), steps.end()};
}

}  // namespace hf
