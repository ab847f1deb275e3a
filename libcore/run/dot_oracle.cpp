#include "libcore/run/dot_oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "cpuexec/fwht.h"

namespace hf {
namespace {

constexpr double kEpsilon = 0x1p-24;     // of one rounding, of the result
constexpr double kSubnormal = 0x1p-150;  // the same where the result is subnormal, absolute

/// The signs of a rotation, as docs/formats.md has them.
std::vector<double> signs(uint32_t state, size_t block) {
    std::vector<double> s(block);
    for (double& sign : s) {
        state = uint32_t((uint64_t(state) * 1103515245 + 12345) % (uint64_t(1) << 31));
        sign = (state & 0x10000) != 0 ? 1 : -1;
    }
    return s;
}

double largest_code(cpu::Activations activations) {
    return activations == cpu::Activations::i16 ? 32639 : 127;
}

/// Calls f(begin, end, step) for each group of activations.
template <class F>
void for_groups(const cpu::Prepare& prepare, double largest, const DotInput& input, F&& f) {
    const size_t cols = input.x.size();
    for (size_t begin = 0; begin < cols; begin += prepare.group) {
        const size_t end = std::min<size_t>(begin + prepare.group, cols);
        float amax = 0;
        for (size_t i = begin; i < end; ++i) amax = std::max(amax, std::fabs(input.x[i]));
        const float step = amax / float(largest);
        f(begin, end, step < std::numeric_limits<float>::min() ? 0 : step);
    }
}

}  // namespace

void rotate_exactly(size_t block, const double* x, size_t n, double* out) {
    const uint32_t seed = block == 256 ? 42 : 43;
    const std::vector<double> first = signs(seed, block), second = signs(seed + 1000, block);
    const double c = 1 / std::sqrt(double(block));
    std::vector<double> h(block), turned(block);  // H[i][j] is h[i & j]
    for (size_t k = 0; k < block; ++k) h[k] = std::popcount(k) % 2 == 0 ? 1 : -1;
    for (size_t begin = 0; begin < n; begin += block) {
        for (size_t j = 0; j < block; ++j) turned[j] = first[j] * x[begin + j];
        for (size_t i = 0; i < block; ++i) {
            double sum = 0;
            for (size_t j = 0; j < block; ++j) sum += h[i & j] * turned[j];
            out[begin + i] = c * second[i] * sum;
        }
    }
}

double rotation_budget(size_t block) {
    return (std::log2(double(block)) + 2) * kEpsilon;
}

DotInput dot_input(const Codec& codec, cpu::Level level, std::span<const float> raw,
                   std::span<const float> awq_scale) {
    const size_t cols = activation_cols(codec, raw.size());
    DotInput input{std::vector<float>(cols), std::vector<double>(cols), std::vector<double>(cols)};
    std::ranges::copy(raw, input.x.begin());
    std::ranges::copy(raw, input.exact.begin());
    if (!awq_scale.empty()) {
        cpu::divide(raw.data(), awq_scale.data(), raw.size(), input.x.data());
        for (size_t i = 0; i < raw.size(); ++i) {
            input.exact[i] = double(raw[i]) / double(awq_scale[i]);
            input.error[i] = std::max(kEpsilon * std::fabs(input.exact[i]), kSubnormal);
        }
    }
    if (codec.rotation == Rotation::none) return input;
    const size_t block = rotation_block(codec.rotation);
    const std::vector<double> divided = input.exact;
    rotate_exactly(block, divided.data(), cols, input.exact.data());
    cpu::rotate(level, block, input.x.data(), cols, input.x.data());
    const double c = 1 / std::sqrt(double(block));
    for (size_t begin = 0; begin < cols; begin += block) {
        double sum = 0, before = 0;  // of |x| in the block, and of its errors
        for (size_t i = begin; i < begin + block; ++i) {
            sum += std::fabs(divided[i]);
            before += input.error[i];
        }
        const double error = c * (sum * rotation_budget(block) + before) + kSubnormal;
        std::fill_n(input.error.begin() + ptrdiff_t(begin), block, error);
    }
    return input;
}

DotInput for_integers(const cpu::Prepare& prepare, cpu::Activations activations, DotInput input) {
    const double largest = largest_code(activations);
    for_groups(prepare, largest, input, [&](size_t begin, size_t end, float step) {
        // x / d is rounded before it is rounded to an integer
        const double half = (0.5 + largest * 4 * kEpsilon) * double(step);
        for (size_t i = begin; i < end; ++i)
            input.error[i] += step > 0 ? half : std::fabs(double(input.x[i]));
    });
    return input;
}

DotInput as_integers(const cpu::Prepare& prepare, cpu::Activations activations, DotInput input) {
    const double largest = largest_code(activations);
    for_groups(prepare, largest, input, [&](size_t begin, size_t end, float step) {
        for (size_t i = begin; i < end; ++i) {
            const float code = step > 0 ? std::nearbyint(input.x[i] / step) : 0;
            input.exact[i] = std::clamp(double(code), -largest, largest) * double(step);
            input.error[i] = 0;
        }
    });
    return input;
}

DotReference dot_reference(const cpu::Prepare& prepare, cpu::Activations activations,
                           std::span<const float> w, const DotInput& input) {
    const bool is_f32 = activations == cpu::Activations::f32;
    DotReference r;
    double from_input = 0, parts = 0;  // of weights: codes and zeros apart
    const size_t group = is_f32 ? w.size() : prepare.group;
    for (size_t begin = 0; begin < w.size(); begin += group) {
        double largest = 0, sum = 0;
        for (size_t i = begin; i < std::min(begin + group, w.size()); ++i) {
            const double weight = w[i], product = weight * input.exact[i];
            r.value += product;
            r.magnitude += std::fabs(product);
            from_input += std::fabs(weight) * input.error[i];
            largest = std::max(largest, std::fabs(weight));
            sum += std::fabs(input.exact[i]);
        }
        parts += 3 * largest * sum;
    }
    const double cols = double(w.size());
    const double f32_roundings =
        (std::ceil(cols / 16) + 4) * kEpsilon * (r.magnitude + from_input) +
        (cols + 8) * kSubnormal;
    if (is_f32)
        r.allowed = from_input + f32_roundings;
    else
        r.allowed = from_input + (2 * std::ceil(cols / prepare.term / 4) + 6) * kEpsilon * parts;
    return r;
}

}  // namespace hf
