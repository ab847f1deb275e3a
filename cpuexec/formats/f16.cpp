// f16: IEEE binary16, two bytes a weight.
#include "cpuexec/float16.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/steps.h"

namespace hf::cpu {
namespace {

struct F16Decoder {
    static constexpr size_t step_bytes = kStep * 2;
    static float at(const std::byte* step, size_t k) {
        return f16_to_f32(load<uint16_t>(step + k * 2));
    }
    HF_AVX2_INLINE static __m256 at8(const std::byte* step, size_t j) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(step) + j));
    }
};

}  // namespace

constinit const CpuOps f16 = step_ops<F16Decoder>();

}  // namespace hf::cpu
