// AVX-VNNI under the integer dots: AVX2 with an instruction that multiplies bytes and adds four
// products to a sum.
#pragma once

#include "cpuexec/formats/avx2.h"

namespace hf::cpu::avxvnni {

struct Isa : avx2::Isa {};
using avx2::add_rows, avx2::Bytes, avx2::Floats, avx2::fused, avx2::Ints, avx2::join, avx2::kHalves,
    avx2::kTile, avx2::load_bytes, avx2::load_floats, avx2::store_sums, avx2::subtract,
    avx2::take_terms, avx2::times, avx2::to_floats;

template <class F>
inline constexpr bool subtracts_offset = F::prepare.offset != 0;

/// Codes times the bytes of one plane, added to `sum`. Signed codes are made 128 larger.
template <class F, Activations a, size_t n>
HF_AVXVNNI_INLINE __m256i plane_products(__m256i sum, const Bytes (&codes)[n], const std::byte* x,
                                         size_t k, size_t h) {
    using S = Shape<F>;
    HF_UNROLL for (size_t j = 0; j < n; ++j) {
        const std::byte* at = x + S::codes_at(a, k, j % S::parts) + 32 * (h + j / S::parts);
        const __m256i moved =
            F::code_max > 0 ? codes[j] : _mm256_xor_si256(codes[j], _mm256_set1_epi8(int8_t(0x80)));
        sum = _mm256_dpbusd_avx_epi32(sum, moved, load_bytes(at));
    }
    return sum;
}

/// As in AVX2, but the offset of signed codes is still in.
template <class F, Activations a, size_t n>
HF_AVXVNNI_INLINE __m256i products(const Bytes (&codes)[n], const std::byte* x, size_t k,
                                   size_t h) {
    __m256i sum = plane_products<F, a>(_mm256_setzero_si256(), codes, x, k, h);
    if constexpr (a == Activations::i16)
        sum = plane_products<F, a>(_mm256_slli_epi32(sum, 8), codes, x + 64, k, h);
    return sum;
}

#define HF_LEVEL HF_AVXVNNI HF_UNCHECKED
#define HF_LEVEL_INLINE HF_AVXVNNI_INLINE
#include "cpuexec/formats/dot_driver.h"
#undef HF_LEVEL
#undef HF_LEVEL_INLINE

}  // namespace hf::cpu::avxvnni
