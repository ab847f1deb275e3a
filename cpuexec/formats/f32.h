// Weights that are float32 already.
#pragma once

#include "cpuexec/formats/steps.h"

namespace hf::cpu {

struct F32Decoder {
    static constexpr size_t step_bytes = kStep * sizeof(float);
    static float at(const std::byte* step, size_t k) {
        return load<float>(step + k * sizeof(float));
    }
    HF_AVX2_INLINE static __m256 at8(const std::byte* step, size_t j) {
        return _mm256_loadu_ps(reinterpret_cast<const float*>(step + j * 8 * sizeof(float)));
    }
};

}  // namespace hf::cpu
