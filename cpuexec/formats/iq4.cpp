// iq4_nl, iq4_xs: 4-bit codes of a fixed table that is denser around zero, nibbles in halves.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/codebooks.h"
#include "cpuexec/formats/f16_scales.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/half_nibbles.h"
#include "cpuexec/formats/int_ops.h"
#include "cpuexec/formats/run_scales.h"

namespace hf::cpu {
namespace {

/// Signed bytes of the table; where bytes must not be signed, 128 more.
constexpr Prepare kIq4 = {
    .group = 32, .term = 32, .ways = 2, .chunk = 16, .offset = 128, .zeros = false};

constexpr ByteLevels kIq4Bytes(kIq4Levels, /*times=*/1, /*more=*/0);

struct Iq4Nl : HalfLevels<Q4_0Block, kIq4Bytes>, F16ScalesNear<Q4_0Block> {
    using Block = Q4_0Block;
    static constexpr size_t weights = 32;
    static constexpr Prepare prepare = kIq4;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        P::lookup_halves(b.nibbles, 32, kIq4Levels, f16_to_f32(b.d), out);
    }
    static constexpr int code_max = 0;
    static constexpr Packing packing = {Packing::halves, 32};
    static constexpr const Levels& levels = kIq4Levels;
    static constexpr size_t codes_of(size_t term) { return nibbles_of<Block>(term); }
};

struct Iq4Xs : RunScales<Iq4Xs> {
    using Block = Iq4XsBlock;
    static constexpr size_t weights = 256;
    static constexpr Prepare prepare = kIq4;
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float d = f16_to_f32(b.d);
        for (size_t r = 0; r < 8; ++r) {
            const int low = b.scales_low[r / 2] >> r % 2 * 4 & 15;
            const int scale = (low | (b.scales_high >> 2 * r & 3) << 4) - 32;
            P::lookup_halves(b.nibbles[r], 32, kIq4Levels, d * float(scale), out + 32 * r);
        }
    }
    static constexpr int code_max = 0;
    static constexpr Packing packing = {Packing::halves, 32};
    static constexpr const Levels& levels = kIq4Levels;
    static constexpr size_t codes_of(size_t term) {
        return term / 8 * sizeof(Block) + offsetof(Block, nibbles) + term % 8 * 16;
    }
    HF_AVX2_INLINE static void runs(Rows w, size_t v, Runs& runs) {
        runs.d = load_f16_rows(w, offsetof(Block, d));
        // Bytes go to run and row; runs are 4 or 2 bits apart
        const __m128i pairs = _mm_setr_epi8(0, 4, 8, 12, 0, 4, 8, 12, 1, 5, 9, 13, 1, 5, 9, 13);
        const __m128i rows = _mm_set1_epi32(0x0c080400);
        const __m128i low = _mm_shuffle_epi8(load_rows(w, offsetof(Block, scales_low)),
                                             _mm_add_epi8(pairs, _mm_set1_epi8(char(2 * v))));
        const __m128i high = _mm_shuffle_epi8(
            load_rows(w, 0),
            _mm_add_epi8(rows, _mm_set1_epi8(char(offsetof(Block, scales_high) + v))));
        const __m128i bits =
            _mm_or_si128(field_of(_mm_srlv_epi32(low, _mm_setr_epi32(0, 4, 0, 4)), 0, 15),
                         field_of(_mm_srlv_epi32(high, _mm_setr_epi32(0, 2, 4, 6)), 0, 3, 4));
        runs.scales = _mm_sub_epi8(bits, _mm_set1_epi8(32));
    }
    HF_AVX2_INLINE static void unpack(avx2::Isa, const std::byte* w, size_t v, size_t, size_t h,
                                      __m256i* codes) {
        const __m256i bytes = avx2::load_bytes(w + offsetof(Block, nibbles) + 64 * v + 32 * h);
        codes[0] = look_up_bytes(kIq4Bytes, avx2::low_nibbles(bytes));
        codes[1] = look_up_bytes(kIq4Bytes, avx2::high_nibbles(bytes));
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa, const std::byte* w, size_t v, size_t, size_t,
                                        __m512i* codes) {
        const __m512i bytes = avx512::load_bytes(w + offsetof(Block, nibbles) + 64 * v);
        codes[0] = look_up_bytes(kIq4Bytes, avx512::low_nibbles(bytes));
        codes[1] = look_up_bytes(kIq4Bytes, avx512::high_nibbles(bytes));
    }
};

}  // namespace

constinit const CpuOps iq4_nl = with_integers<Iq4Nl>(block_ops<Iq4Nl>());
constinit const CpuOps iq4_xs = with_integers<Iq4Xs>(block_ops<Iq4Xs>());

}  // namespace hf::cpu
