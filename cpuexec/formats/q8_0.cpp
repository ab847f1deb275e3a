// q8_0: 32 weights in 34 bytes, w[i] = scale * q[i]. The product of an f16 and an int8 is exact.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "cpuexec/blocks.h"
#include "cpuexec/float16.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/f16_scales.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/int_ops.h"
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

struct Q8_0 : F16Scales<Q8_0Block> {
    using Block = Q8_0Block;
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = {
        .group = 32, .term = 32, .ways = 1, .chunk = 64, .offset = 128, .zeros = false};
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        P::signed_bytes(b.q, 32, f16_to_f32(b.scale), out);
    }
    static constexpr int code_max = 0;
    HF_AVX2_INLINE static void unpack(avx2::Isa, const std::byte* w, size_t, size_t k, size_t h,
                                      __m256i* codes) {
        codes[0] = avx2::load_bytes(w + (2 * k + h) * sizeof(Block) + offsetof(Block, q));
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa, const std::byte* w, size_t, size_t k, size_t,
                                        __m512i* codes) {
        const std::byte* q = w + 2 * k * sizeof(Block) + offsetof(Block, q);
        codes[0] = avx512::load_two(q, q + sizeof(Block));
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

constinit const CpuOps q8_0 = with_integers<Q8_0>(step_ops<Q8_0Decoder>());

}  // namespace hf::cpu
