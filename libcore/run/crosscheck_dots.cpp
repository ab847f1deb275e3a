#include "libcore/run/crosscheck_dots.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cpuexec/activations.h"
#include "cpuexec/isa.h"

namespace hf {

std::vector<OwnDot> own_dots(const Codec& codec) {
    std::vector<OwnDot> all;
    for (size_t a = 0; a < cpu::kActivations; ++a)
        for (size_t l = 0; l < cpu::kLevels; ++l)
            if (const cpu::Dot dot = codec.cpu.dot[l][a]) {
                const auto level = cpu::Level(l);
                const auto activations = cpu::Activations(a);
                all.push_back({level, activations, dot,
                               fmt::format("{}/{}", cpu::name(level), name(activations))});
            }
    return all;
}

std::string why_skipped(cpu::Level level, const CpuCheckOptions& options) {
    if (!cpu::cpu_has(level)) return fmt::format("this CPU has no {}", cpu::name(level));
    if (level > options.highest)
        return fmt::format("above {}, the highest level asked for", cpu::name(options.highest));
    return "";
}

PreparedColumns::PreparedColumns(const Codec& codec, const OwnDot& own,
                                 std::span<const DotInput> inputs) {
    const cpu::Prepare& how = codec.cpu.prepare;
    const size_t cols = inputs[0].x.size();
    const bool is_f32 = own.activations == cpu::Activations::f32;
    const size_t floats = is_f32 ? cols : cpu::prepared_floats(how, own.activations, cols);
    stride_ = floats + 5;
    data_.assign((inputs.size() - 1) * stride_ + floats, NAN);
    for (size_t t = 0; t < inputs.size(); ++t) {
        float* out = data_.data() + t * stride_;
        if (is_f32)
            std::ranges::copy(inputs[t].x, out);
        else
            cpu::prepare(own.level, how, own.activations, inputs[t].x.data(), cols, out);
    }
}

}  // namespace hf
