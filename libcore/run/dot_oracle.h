// What a dot should give, in float64 and by other code, and how far from it a dot may be.
#pragma once

#include <span>
#include <vector>

#include "libcore/codec/codec.h"

namespace hf {

/// out = R x of docs/formats.md by the definition, H written out: block^2 products a block.
///
/// x, out  (n), n a multiple of block, not the same memory
void rotate_exactly(size_t block, const double* x, size_t n, double* out);

/// How far cpu::rotate may be from R x on one block, as a share of c * sum |x|: log2(block)
/// butterflies, the last product, c itself.
double rotation_budget(size_t block);

/// Activations on their way to a weight: divided by AWQ scales, padded, rotated.
struct DotInput {
    std::vector<float> x;       // (activation_cols) as the engine makes it
    std::vector<double> exact;  // the same in float64, from the same raw activations
    std::vector<double> error;  // how far x may be from it
};

/// raw       (cols) float32
/// awq_scale (cols), or empty
DotInput dot_input(const Codec& codec, cpu::Level level, std::span<const float> raw,
                   std::span<const float> awq_scale = {});

/// The same input for a dot of integers (cpuexec/activations.h): x is off by up to half a step of
/// its group more.
DotInput for_integers(const cpu::Prepare& prepare, cpu::Activations activations, DotInput input);

/// The integers themselves, times their steps, as what is exact. So a dot's own roundings can be
/// told from those of its activations.
DotInput as_integers(const cpu::Prepare& prepare, cpu::Activations activations, DotInput input);

/// A sum of products, and the distance from it that is explained.
struct DotReference {
    double value = 0;      // sum of w[i] * exact[i]
    double magnitude = 0;  // sum of |w[i] * exact[i]|
    double allowed = 0;
};

/// Allows sum |w| * error of the input, and the roundings of the order of sums (codec_ops.h):
///
/// f32       cols / 16 additions to a lane and four of the fold, each of the magnitude
/// i16, int8 two to a lane for each four terms, three of the fold, three of scales and sums; each
///           of what code and zero of a weight may be before they meet, three times the largest
///           weight of a group
DotReference dot_reference(const cpu::Prepare& prepare, cpu::Activations activations,
                           std::span<const float> w, const DotInput& input);

}  // namespace hf
