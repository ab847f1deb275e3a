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
    Buffer buffer;  // rows * codec->row_bytes(cols)
    Exec exec = Exec::device;
    Buffer awq_scale;  // (cols) float32, or empty

    Residency residency() const { return buffer.residency(); }
    cpu::WeightView view() const {
        return {buffer.data(), shape.rows, shape.cols, codec->row_bytes(shape.cols), nullptr};
    }
    /// A vector's values, on a lane that can read the buffer.
    const float* values() const { return reinterpret_cast<const float*>(buffer.data()); }
};

}  // namespace hf
