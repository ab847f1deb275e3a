// The plain integer dot, once for all formats: the order of codec_ops.h spelled out. The dots of
// all levels are compared with it, bit for bit.
#pragma once

#include "cpuexec/formats/dot_f32.h"

namespace hf::cpu {

/// As `Dot`, for i16 and int8.
///
/// terms  writes weights as the policy Terms of codes.h does, whole groups at the end of a row
void dot_terms_scalar(Stretch terms, const Prepare& prepare, Activations a, const WeightView& W,
                      size_t r0, size_t r1, const Columns& X, float* y, size_t y_stride);

}  // namespace hf::cpu
