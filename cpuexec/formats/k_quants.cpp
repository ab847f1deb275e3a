// q2_k .. q6_k: 256 weights; runs of 16 or 32 have a small integer scale (and minimum) of their
// own, which d (and dmin) turn into floats. Run by run: w = (d * scale) * q - dmin * min.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/bit_stream.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/int_ops.h"
#include "cpuexec/formats/run_scales.h"

namespace hf::cpu {
namespace {

/// Scale and minimum of run r, 6 bits each; blocks.h has the drawing.
HF_INLINE int packed_scale(const PackedScales& s, size_t r) {
    return r < 4 ? s[r] & 63 : (s[r + 4] & 15) | s[r - 4] >> 6 << 4;
}
HF_INLINE int packed_min(const PackedScales& s, size_t r) {
    return r < 4 ? s[r + 4] & 63 : s[r + 4] >> 4 | s[r] >> 6 << 4;
}

/// d, dmin, scales and minima of runs 4v .. 4v + 3, which begin Q4KBlock and Q5KBlock.
HF_AVX2_INLINE void packed_runs(Rows w, size_t v, Runs& runs) {
    static_assert(offsetof(Q4KBlock, scales) == 4 && offsetof(Q5KBlock, scales) == 4);
    const __m128i a = _mm_unpacklo_epi32(avx2::load_16(w[0]), avx2::load_16(w[1]));
    const __m128i b = _mm_unpacklo_epi32(avx2::load_16(w[2]), avx2::load_16(w[3]));
    const __m128i c = _mm_unpackhi_epi32(avx2::load_16(w[0]), avx2::load_16(w[1]));
    const __m128i e = _mm_unpackhi_epi32(avx2::load_16(w[2]), avx2::load_16(w[3]));
    set_d_dmin(_mm_unpacklo_epi64(a, b), runs);
    const __m128i first = _mm_unpackhi_epi64(a, b), second = _mm_unpacklo_epi64(c, e);
    __m128i scales = field_of(first, 0, 63), mins = field_of(second, 0, 63);
    if (v == 1) {
        const __m128i third = _mm_unpackhi_epi64(c, e);
        scales = _mm_or_si128(field_of(third, 0, 15), field_of(first, 6, 3, 4));
        mins = _mm_or_si128(field_of(third, 4, 15), field_of(second, 6, 3, 4));
    }
    runs.scales = rows_to_runs(scales);
    runs.mins = rows_to_runs(mins);
}

/// Bit number i in the first 32 bytes, the one above it in the others.
HF_AVX512_INLINE __m512i bit_and_next(size_t i) {
    return _mm512_inserti64x4(_mm512_set1_epi8(char(1 << i)), _mm256_set1_epi8(char(2 << i)), 1);
}

/// 2-bit codes of terms 4v .. 4v + 3, which lie in 32 bytes; vectors of 32 are half h of them.
HF_AVX2_INLINE __m256i two_bits_of(avx2::Isa, const std::byte* codes, size_t v, size_t h) {
    const __m256i bytes = avx2::load_bytes(codes + 32 * (v / 2));
    return _mm256_and_si256(_mm256_srli_epi16(bytes, int(4 * (v % 2) + 2 * h)),
                            _mm256_set1_epi8(3));
}
HF_AVX512_INLINE __m512i two_bits_of(avx512::Isa, const std::byte* codes, size_t v, size_t) {
    const __m256i first =
        _mm256_srli_epi16(avx512::load_32(codes + 32 * (v / 2)), int(4 * (v % 2)));
    return _mm512_and_si512(
        _mm512_inserti64x4(_mm512_castsi256_si512(first), _mm256_srli_epi16(first, 2), 1),
        _mm512_set1_epi8(3));
}

/// 64 nibbles in halves.
HF_AVX2_INLINE __m256i nibbles_of(avx2::Isa, const std::byte* nibbles, size_t h) {
    const __m256i bytes = avx2::load_bytes(nibbles);
    return h == 0 ? avx2::low_nibbles(bytes) : avx2::high_nibbles(bytes);
}
HF_AVX512_INLINE __m512i nibbles_of(avx512::Isa, const std::byte* nibbles, size_t) {
    const __m256i bytes = avx512::load_32(nibbles);
    return avx512::low_nibbles(
        _mm512_inserti64x4(_mm512_castsi256_si512(bytes), _mm256_srli_epi16(bytes, 4), 1));
}

struct Q2K : RunScales<Q2K> {
    using Block = Q2KBlock;
    static constexpr size_t weights = 256;
    static constexpr Prepare prepare = {
        .group = 32, .term = 16, .ways = 1, .chunk = 64, .offset = 0, .zeros = true};
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float d = f16_to_f32(b.d), dmin = f16_to_f32(b.dmin);
        for (size_t r = 0; r < 16; ++r, out += 16) {
            const float scale = d * float(b.scales[r] & 15), min = dmin * float(b.scales[r] >> 4);
            const uint8_t* codes = b.codes + r / 8 * 32 + r % 2 * 16;
            P::affine_bytes({codes, int(r / 2 % 4 * 2), 3}, 16, 0, scale, -min, out);
        }
    }
    static constexpr int code_max = 3;
    HF_AVX2_INLINE static void runs(Rows w, size_t v, Runs& runs) {
        set_d_dmin(load_rows(w, offsetof(Block, d)), runs);
        const __m128i pairs = rows_to_runs(load_rows(w, offsetof(Block, scales) + 4 * v));
        runs.scales = field_of(pairs, 0, 15);
        runs.mins = field_of(pairs, 4, 15);
    }
    HF_AVX2_INLINE static void unpack(avx2::Isa isa, const std::byte* w, size_t v, size_t, size_t h,
                                      __m256i* codes) {
        codes[0] = two_bits_of(isa, w + offsetof(Block, codes), v, h);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa isa, const std::byte* w, size_t v, size_t,
                                        size_t h, __m512i* codes) {
        codes[0] = two_bits_of(isa, w + offsetof(Block, codes), v, h);
    }
};

struct Q3K : RunScales<Q3K> {
    using Block = Q3KBlock;
    static constexpr size_t weights = 256;
    static constexpr Prepare prepare = {
        .group = 32, .term = 16, .ways = 1, .chunk = 64, .offset = 4, .zeros = false};
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float d = f16_to_f32(b.d);
        for (size_t r = 0; r < 16; ++r, out += 16) {
            const int low = b.scales[r % 8] >> r / 8 * 4 & 15;
            const int high = b.scales[8 + r % 4] >> r / 4 * 2 & 3;
            const float scale = d * float((low | high << 4) - 32);
            const uint8_t* codes = b.codes + r / 8 * 32 + r % 2 * 16;
            P::affine_bytes({codes, int(r / 2 % 4 * 2), 3}, {b.high + r % 2 * 16, int(r / 2), 1, 2},
                            16, 4, scale, kNone, out);
        }
    }
    static constexpr int code_max = 7;
    HF_AVX2_INLINE static void runs(Rows w, size_t v, Runs& runs) {
        runs.d = load_f16_rows(w, offsetof(Block, d));
        const size_t at = offsetof(Block, scales);
        const __m128i low = field_of(load_rows(w, at + 4 * (v % 2)), int(4 * (v / 2)), 15);
        const __m128i high = field_of(load_rows(w, at + 8), int(2 * v), 3, 4);
        runs.scales = rows_to_runs(_mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(32)));
    }
    /// The top bits of the v-th four terms are 2v and 2v + 1 of 32 bytes.
    HF_AVX2_INLINE static void unpack(avx2::Isa isa, const std::byte* w, size_t v, size_t, size_t h,
                                      __m256i* codes) {
        codes[0] = add_bits(two_bits_of(isa, w + offsetof(Block, codes), v, h),
                            avx2::load_bytes(w + offsetof(Block, high)),
                            _mm256_set1_epi8(char(1 << (2 * v + h))), 4);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa isa, const std::byte* w, size_t v, size_t,
                                        size_t h, __m512i* codes) {
        const std::byte* high = w + offsetof(Block, high);
        codes[0] = add_bits(two_bits_of(isa, w + offsetof(Block, codes), v, h),
                            avx512::load_two(high, high), bit_and_next(2 * v), 4);
    }
};

struct Q4K : RunScales<Q4K> {
    using Block = Q4KBlock;
    static constexpr size_t weights = 256;
    static constexpr Prepare prepare = {
        .group = 32, .term = 32, .ways = 1, .chunk = 64, .offset = 0, .zeros = true};
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float d = f16_to_f32(b.d), dmin = f16_to_f32(b.dmin);
        for (size_t r = 0; r < 8; ++r, out += 32) {
            const float scale = d * float(packed_scale(b.scales, r));
            const float min = dmin * float(packed_min(b.scales, r));
            P::affine_bytes({b.nibbles[r / 2], int(r % 2 * 4), 15}, 32, 0, scale, -min, out);
        }
    }
    static constexpr int code_max = 15;
    static constexpr Packing packing = {Packing::by_turns, 32};
    static constexpr size_t codes_of(size_t term) {
        return offsetof(Block, nibbles) + term / 2 * 32;
    }
    HF_AVX2_INLINE static void runs(Rows w, size_t v, Runs& runs) { packed_runs(w, v, runs); }
    HF_AVX2_INLINE static void unpack(avx2::Isa isa, const std::byte* w, size_t v, size_t k,
                                      size_t h, __m256i* codes) {
        codes[0] = nibbles_of(isa, w + offsetof(Block, nibbles) + 32 * (2 * v + k), h);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa isa, const std::byte* w, size_t v, size_t k,
                                        size_t h, __m512i* codes) {
        codes[0] = nibbles_of(isa, w + offsetof(Block, nibbles) + 32 * (2 * v + k), h);
    }
};

struct Q5K : RunScales<Q5K> {
    using Block = Q5KBlock;
    static constexpr size_t weights = 256;
    static constexpr Prepare prepare = {
        .group = 32, .term = 32, .ways = 1, .chunk = 64, .offset = 0, .zeros = true};
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float d = f16_to_f32(b.d), dmin = f16_to_f32(b.dmin);
        for (size_t r = 0; r < 8; ++r, out += 32) {
            const float scale = d * float(packed_scale(b.scales, r));
            const float min = dmin * float(packed_min(b.scales, r));
            P::affine_bytes({b.nibbles[r / 2], int(r % 2 * 4), 15}, {b.high, int(r), 1, 4}, 32, 0,
                            scale, -min, out);
        }
    }
    static constexpr int code_max = 31;
    HF_AVX2_INLINE static void runs(Rows w, size_t v, Runs& runs) { packed_runs(w, v, runs); }
    HF_AVX2_INLINE static void unpack(avx2::Isa isa, const std::byte* w, size_t v, size_t k,
                                      size_t h, __m256i* codes) {
        codes[0] = add_bits(nibbles_of(isa, w + offsetof(Block, nibbles) + 32 * (2 * v + k), h),
                            avx2::load_bytes(w + offsetof(Block, high)),
                            _mm256_set1_epi8(char(1 << (4 * v + 2 * k + h))), 16);
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa isa, const std::byte* w, size_t v, size_t k,
                                        size_t h, __m512i* codes) {
        const std::byte* high = w + offsetof(Block, high);
        codes[0] = add_bits(nibbles_of(isa, w + offsetof(Block, nibbles) + 32 * (2 * v + k), h),
                            avx512::load_two(high, high), bit_and_next(4 * v + 2 * k), 16);
    }
};

struct Q6K : RunScales<Q6K> {
    using Block = Q6KBlock;
    static constexpr size_t weights = 256;
    static constexpr Prepare prepare = {
        .group = 32, .term = 16, .ways = 1, .chunk = 64, .offset = 32, .zeros = false};
    template <class P>
    HF_INLINE static void decode(const Block& b, float* out) {
        const float d = f16_to_f32(b.d);
        for (size_t r = 0; r < 16; ++r, out += 16) {
            const size_t half = r / 8, quarter = r / 2 % 4, at = r % 2 * 16;
            P::affine_bytes({b.low[half][quarter % 2] + at, int(quarter / 2 * 4), 15},
                            {b.high[half] + at, int(quarter * 2), 3, 4}, 16, 32,
                            d * float(b.scales[r]), kNone, out);
        }
    }
    static constexpr int code_max = 63;
    HF_AVX2_INLINE static void runs(Rows w, size_t v, Runs& runs) {
        runs.d = load_f16_rows(w, offsetof(Block, d));
        runs.scales = rows_to_runs(load_rows(w, offsetof(Block, scales) + 4 * v));
    }
    /// Terms 4v .. 4v + 3 are quarters 2 (v % 2) and 2 (v % 2) + 1 of a half.
    HF_AVX2_INLINE static void unpack(avx2::Isa, const std::byte* w, size_t v, size_t, size_t h,
                                      __m256i* codes) {
        const __m256i low = avx2::load_bytes(w + offsetof(Block, low) + 64 * (v / 2) + 32 * h);
        const __m256i high = avx2::load_bytes(w + offsetof(Block, high) + 32 * (v / 2));
        const int quarter = int(2 * (v % 2) + h);
        const __m256i moved = quarter < 2 ? _mm256_slli_epi16(high, 4 - 2 * quarter)
                                          : _mm256_srli_epi16(high, 2 * quarter - 4);
        codes[0] = _mm256_or_si256(v % 2 == 0 ? avx2::low_nibbles(low) : avx2::high_nibbles(low),
                                   _mm256_and_si256(moved, _mm256_set1_epi8(0x30)));
    }
    HF_AVX512_INLINE static void unpack(avx512::Isa, const std::byte* w, size_t v, size_t, size_t,
                                        __m512i* codes) {
        const __m512i low = avx512::load_bytes(w + offsetof(Block, low) + 64 * (v / 2));
        const __m256i high = avx512::load_32(w + offsetof(Block, high) + 32 * (v / 2));
        const __m256i first = v % 2 == 0 ? _mm256_slli_epi16(high, 4) : high;
        const __m256i second = v % 2 == 0 ? _mm256_slli_epi16(high, 2) : _mm256_srli_epi16(high, 2);
        const __m512i moved = _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
        codes[0] =
            _mm512_or_si512(v % 2 == 0 ? avx512::low_nibbles(low) : avx512::high_nibbles(low),
                            _mm512_and_si512(moved, _mm512_set1_epi8(0x30)));
    }
};

}  // namespace

constinit const CpuOps q2_k = with_integers<Q2K>(block_ops<Q2K>());
constinit const CpuOps q3_k = with_integers<Q3K>(block_ops<Q3K>());
constinit const CpuOps q4_k = with_integers<Q4K>(block_ops<Q4K>());
constinit const CpuOps q5_k = with_integers<Q5K>(block_ops<Q5K>());
constinit const CpuOps q6_k = with_integers<Q6K>(block_ops<Q6K>());

}  // namespace hf::cpu
