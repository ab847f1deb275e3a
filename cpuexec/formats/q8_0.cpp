// q8_0: 32 weights in 34 bytes, w[i] = scale * q[i]. The product of an f16 and an int8 is exact.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "cpuexec/blocks.h"
#include "cpuexec/float16.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/steps.h"

namespace hf::cpu {
namespace {

struct Q8_0Decoder {
    static constexpr size_t step_bytes = sizeof(Q8_0Block);
    static const Q8_0Block& block(const std::byte* step) {
        return *reinterpret_cast<const Q8_0Block*>(step);
    }
    static float at(const std::byte* step, size_t k) {
        return f16_to_f32(block(step).scale) * float(block(step).q[k]);
    }
    HF_AVX2_INLINE static __m256 at8(const std::byte* step, size_t j) {
        const __m256 scale = _mm256_set1_ps(_cvtsh_ss(block(step).scale));
        const __m128i q = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block(step).q + 8 * j));
        return _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)));
    }
};

Q8_0Block encode_block(const float* x) {
    float amax = 0;
    bool finite = true;
    for (size_t i = 0; i < 32; ++i) {
        amax = std::max(amax, std::fabs(x[i]));
        finite = finite && std::isfinite(x[i]);
    }
    if (!finite) return {.scale = 0x7e00, .q = {}};  // NaN * 0 is NaN
    const float scale = amax / 127;
    const float inverse = scale >= FLT_MIN ? 1 / scale : 0;  // a smaller scale is 0 as f16
    Q8_0Block b{.scale = f32_to_f16_truncated(scale), .q = {}};
    for (size_t i = 0; i < 32; ++i)
        b.q[i] = int8_t(std::clamp(std::round(x[i] * inverse), -128.0f, 127.0f));
    return b;
}

}  // namespace

void encode_q8_0(const float* x, size_t n, std::byte* out) {
    for (size_t i = 0; i < n; i += 32, out += sizeof(Q8_0Block)) {
        const Q8_0Block block = encode_block(x + i);
        std::memcpy(out, &block, sizeof(block));
    }
}

constinit const CpuOps q8_0 = step_ops<Q8_0Decoder>({.group = 32, .offsets = false});

}  // namespace hf::cpu
