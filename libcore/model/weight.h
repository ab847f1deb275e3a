// Weight: a tensor of a model, with every decision about it.
#pragma once

#include <string>

#include "libcore/base/shape.h"
#include "libcore/codec/codec.h"
#include "libcore/model/buffer.h"

namespace hf {

/// Who multiplies a weight. Recorded before the weight is loaded, never derived again.
enum class Exec : uint8_t { device, cpu, split };

/// Small things that steps on both lanes may read: on the device, and a copy in ordinary host
/// memory where the CPU lane needs one.
struct Mirrored {
    Buffer buffer, mirror;

    /// The bytes for a lane. One that may not read what is there is our own mistake.
    const std::byte* on(Lane lane) const {
        const Buffer& b = lane == Lane::cpu && mirror.data() ? mirror : buffer;
        HF_ASSERT(!b.data() || can_read(lane, b.residency()));
        return b.data();
    }
    const float* values(Lane lane) const { return reinterpret_cast<const float*>(on(lane)); }
};

/// A tensor as the steps see it. Matrices keep the file's bytes; vectors (norms, convolution,
/// decay, biases) are float32 in their effective form, whatever the file stores.
struct Weight {
    std::string name;  // the file's name for it, for messages
    const Codec* codec = nullptr;
    Shape shape;

    // Decided by the placement, before anything is loaded.
    Residency residency = Residency::device;
    Exec exec = Exec::device;
    uint64_t split_row = 0;  // exec split: rows [0, split_row) are the device's, the rest the CPU's
    bool is_mirrored = false;  // vectors and sidecars: the CPU lane gets a copy

    // Filled by the load.
    Mirrored data;        // tensor_bytes(*codec, shape); only vectors have a mirror
    Mirrored awq_scale;   // (cols) float32, or empty
    Mirrored levels;      // (kLloydLevels) float32 if the codec keeps them in a tensor, else empty
    uint32_t awq_id = 0;  // weights with the same scale share it; 0: none

    uint64_t bytes() const { return tensor_bytes(*codec, shape); }
    cpu::WeightView view(Lane lane) const {
        return view_of(*codec, data.on(lane), shape, levels.on(lane));
    }
    /// A vector's values.
    const float* values(Lane lane) const { return data.values(lane); }
};

}  // namespace hf
