// tq2g128, bq1g128: weights of three values, w = (q - 1) * scale, or of two, +scale and -scale. The
// code 3 of the first is never written and means 2 * scale.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/bit_stream.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/f16_scales.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/int_ops.h"

namespace hf::cpu {
namespace {

constexpr Levels kTwo = {-1, 1}, kThree = {-1, 0, 1, 2};

template <unsigned width>
struct Ternary : std::conditional_t<width == 1, F16ScalesNear<TernaryBlock<width>>,
                                    F16Scales<TernaryBlock<width>>> {
    using Block = TernaryBlock<width>;
    static constexpr size_t weights = 128;
    static constexpr Prepare prepare = {.group = 128,
                                        .term = 128,
                                        .ways = width == 2 ? 4 : 1,
                                        .chunk = width == 2 ? 1 : 64,
                                        .offset = 1,
                                        .zeros = false};
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float scale = f16_to_f32(b.scale);
        P::template lookup<width>(b.codes, 128, width == 1 ? kTwo : kThree, scale, out);
    }
    static constexpr int code_max = width == 2 ? 3 : 2;
    static constexpr Packing packing = {Packing::stream, 128, width};
    static constexpr const Levels& levels = width == 1 ? kTwo : kThree;
    static constexpr size_t codes_of(size_t term) {
        return term * sizeof(Block) + offsetof(Block, codes);
    }
    HF_AVX2_INLINE static void unpack(avx2::Isa, const std::byte* w, size_t, size_t k, size_t h,
                                      __m256i* codes) {
        if constexpr (width == 2) return two_bits(avx2::load_bytes(w + codes_of(2 * k + h)), codes);
        codes[0] = one_bit_32(w + codes_of(k) + 4 * h);
        codes[1] = one_bit_32(w + codes_of(k) + 4 * h + 8);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa, const std::byte* w, size_t, size_t k, size_t,
                                        __m512i* codes) {
        if constexpr (width == 2)
            return two_bits(avx512::load_two(w + codes_of(2 * k), w + codes_of(2 * k + 1)), codes);
        codes[0] = one_bit_64(w + codes_of(k));
        codes[1] = one_bit_64(w + codes_of(k) + 8);
    }
};

}  // namespace

constinit const CpuOps ternary = with_integers<Ternary<2>>(block_ops<Ternary<2>>());
constinit const CpuOps binary = with_integers<Ternary<1>>(block_ops<Ternary<1>>());

}  // namespace hf::cpu
