// The rotation at each level, against its definition.
#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "cpuexec/fwht.h"
#include "cpuexec/isa.h"
#include "libcore/run/crosscheck_dots.h"

namespace hf {
namespace {

constexpr size_t kBlocks = 4;  // of values that are rotated

/// Compares blocks. An error is stated as a share of c * sum |x| of its block.
void compare_blocks(Comparison& comparison, std::span<const float> got,
                    std::span<const double> reference, size_t block, double budget,
                    std::span<const float> x) {
    for (size_t i = 0; i < got.size(); ++i) {
        double sum = 0;
        for (float v : x.subspan(i / block * block, block)) sum += std::fabs(double(v));
        const double scale = sum / std::sqrt(double(block));
        comparison.add(got[i], reference[i], budget * scale, scale,
                       [=] { return fmt::format("value {} of block {}", i % block, i / block); });
    }
}

void check_block(size_t block, cpu::Level level, const OnRecord& on_record) {
    std::mt19937_64 random(block);
    std::normal_distribution<float> normal;
    std::vector<float> x(kBlocks * block), out(x.size()), back(x.size());
    std::ranges::generate(x, [&] { return normal(random); });
    const std::vector<double> exact_x(x.begin(), x.end());
    std::vector<double> exact(x.size());
    rotate_exactly(block, exact_x.data(), x.size(), exact.data());
    cpu::rotate(level, block, x.data(), x.size(), out.data());
    cpu::unrotate(level, block, out.data(), x.size(), back.data());

    const std::string subject = std::to_string(block), variant(cpu::name(level));
    const double budget = rotation_budget(block);
    Comparison rotation("rotation", subject, variant), inverse("inverse", subject, variant);
    compare_blocks(rotation, out, exact, block, budget, x);
    on_record(rotation.record());
    // An orthogonal turn makes at most sqrt(block) of errors of size 1, and a sum of magnitudes at
    // most sqrt(block) times larger: so much for the errors of the way there, and for its own.
    compare_blocks(inverse, back, exact_x, block, 2 * std::sqrt(double(block)) * budget, x);
    on_record(inverse.record());
}

}  // namespace

void crosscheck_rotation(const CpuCheckOptions& options, const OnRecord& on_record) {
    for (const size_t block : {128, 256})
        for (const cpu::Level level : {cpu::Level::scalar, cpu::Level::avx2}) {
            const std::string why = why_skipped(level, options);
            if (why.empty())
                check_block(block, level, on_record);
            else
                on_record(skipped_check("rotation", std::to_string(block),
                                        std::string(cpu::name(level)), why));
        }
}

}  // namespace hf
