// bf16: the upper half of a float32, two bytes a weight.
#include "cpuexec/float16.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/steps.h"

namespace hf::cpu {
namespace {

struct Bf16Decoder {
    static constexpr size_t step_bytes = kStep * 2;
    static float at(const std::byte* step, size_t k) {
        return bf16_to_f32(load<uint16_t>(step + k * 2));
    }
    HF_AVX2_INLINE static __m256 at8(const std::byte* step, size_t j) {
        const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(step) + j);
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
    }
};

}  // namespace

constinit const CpuOps bf16 = step_ops<Bf16Decoder>();

}  // namespace hf::cpu
