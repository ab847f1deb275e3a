// Weight: a loaded tensor, with every decision about it.
#pragma once

#include <string>

#include "libcore/base/shape.h"
#include "libcore/codec/codec.h"
#include "libcore/model/buffer.h"

namespace hf {

/// Who multiplies a weight. Recorded when the weight is loaded, never derived again.
enum class Exec : uint8_t { device, cpu, split };

/// A tensor as the steps see it. Matrices keep the file's bytes; vectors (norms, convolution,
/// decay, biases) are float32 in their effective form, whatever the file stores.
struct Weight {
    std::string name;  // the file's name for it, for messages
    const Codec* codec = nullptr;
    Shape shape;
    Buffer buffer;  // tensor_bytes(*codec, shape)
    Exec exec = Exec::device;
    Buffer awq_scale;     // (cols) float32, or empty
    uint32_t awq_id = 0;  // weights with the same scale share it; 0: none
    Buffer levels;        // (kLloydLevels) float32 if the codec keeps them in a tensor, else empty

    Residency residency() const { return buffer.residency(); }
    cpu::WeightView view() const { return view_of(*codec, buffer.data(), shape, levels.data()); }
    const float* awq_values() const { return reinterpret_cast<const float*>(awq_scale.data()); }
    /// A vector's values, on a lane that can read the buffer.
    const float* values() const { return reinterpret_cast<const float*>(buffer.data()); }
};

}  // namespace hf
