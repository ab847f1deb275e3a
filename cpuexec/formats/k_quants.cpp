// q2_k .. q6_k: 256 weights; runs of 16 or 32 have a small integer scale (and minimum) of their
// own, which d (and dmin) turn into floats. Run by run: w = (d * scale) * q - dmin * min.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/block_ops.h"
#include "cpuexec/formats/formats.h"

namespace hf::cpu {
namespace {

/// Scale and minimum of run r, 6 bits each; blocks.h has the drawing.
HF_INLINE int packed_scale(const PackedScales& s, size_t r) {
    return r < 4 ? s[r] & 63 : (s[r + 4] & 15) | s[r - 4] >> 6 << 4;
}
HF_INLINE int packed_min(const PackedScales& s, size_t r) {
    return r < 4 ? s[r + 4] & 63 : s[r + 4] >> 4 | s[r] >> 6 << 4;
}

struct Q2K {
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
};

struct Q3K {
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
};

struct Q4K {
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
};

struct Q5K {
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
};

struct Q6K {
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
};

}  // namespace

constinit const CpuOps q2_k = block_ops<Q2K>();
constinit const CpuOps q3_k = block_ops<Q3K>();
constinit const CpuOps q4_k = block_ops<Q4K>();
constinit const CpuOps q5_k = block_ops<Q5K>();
constinit const CpuOps q6_k = block_ops<Q6K>();

}  // namespace hf::cpu
