// hfq*, mq*, q4f16g64: minimum and step of a group, and the nearest multiple of the step.
#include "cpuexec/blocks.h"
#include "cpuexec/float16.h"
#include "libcore/quantize/encode.h"
#include "libcore/quantize/packing.h"

namespace hf::quantize {
namespace {

struct Range {
    float low, high;
};

/// Of zeros of both signs, -0 is the lower one.
Range range_of(const float* x, size_t n) {
    Range r{x[0], x[0]};
    for (size_t i = 1; i < n; ++i) {
        r.low = x[i] < r.low || (x[i] == r.low && std::signbit(x[i])) ? x[i] : r.low;
        r.high = x[i] > r.high ? x[i] : r.high;
    }
    return r;
}

/// codes[i] = (x[i] - zero) * inverse rounded, within [0, most]. What is no number becomes 0.
void round_codes(const float* x, size_t n, float zero, float inv, int most, uint8_t* codes) {
    for (size_t i = 0; i < n; ++i) {
        float q = (x[i] - zero) * inv + 0.5f;
        q = q > 0 ? q : 0;
        q = q < float(most) ? q : float(most);
        codes[i] = uint8_t(int(q));
    }
}

struct F32Pair {
    float scale, zero;
};

/// Codes against a pair of f32. A constant group has scale 1 and codes 0.
F32Pair fit_f32(const float* x, size_t n, int most, uint8_t* codes) {
    const Range r = range_of(x, n);
    const float span = r.high - r.low;
    const float scale = span > 0 ? span / float(most) : 1;
    round_codes(x, n, r.low, span > 0 ? 1 / scale : 0, most, codes);
    return {scale, r.low};
}

/// Codes against a pair of f16, as it will be read back. Both are truncated, so the highest code
/// stays a little below the maximum. A group that is constant, or nearly, has scale 0 and codes 0.
F16Pair fit_f16(const float* x, size_t n, int most, uint8_t* codes) {
    const Range r = range_of(x, n);
    const float step = r.high > r.low ? (r.high - r.low) / float(most) : 0;
    const F16Pair pair = {cpu::f32_to_f16_truncated(step), cpu::f32_to_f16_truncated(r.low)};
    const float scale = cpu::f16_to_f32(pair.scale);
    round_codes(x, n, cpu::f16_to_f32(pair.zero), scale > 0 ? 1 / scale : 0, scale > 0 ? most : 0,
                codes);
    return pair;
}

template <class Block, size_t group>
void one_f16_pair(const float* row, size_t cols, std::byte* out) {
    uint8_t codes[group];
    for (size_t g = 0; g < cols / group; ++g) {
        auto& block = block_at<Block>(out, g);
        block = {};
        block.all = fit_f16(row + g * group, group, 15, codes);
        pack<4>(codes, group, block.codes);
    }
}

}  // namespace

template <unsigned width, size_t group>
void affine(const float* row, size_t cols, std::byte* out, std::byte*) {
    uint8_t codes[group];
    for (size_t g = 0; g < cols / group; ++g) {
        auto& block = block_at<AffineBlock<width, group>>(out, g);
        const F32Pair pair = fit_f32(row + g * group, group, (1 << width) - 1, codes);
        block.scale = pair.scale;
        block.zero = pair.zero;
        pack<width>(codes, group, block.codes);
    }
}

template <unsigned width>
void affine_v2(const float* row, size_t cols, std::byte* out, std::byte*) {
    uint8_t codes[256];
    for (size_t g = 0; g < cols / 256; ++g) {
        auto& block = block_at<AffineV2Block<width>>(out, g);
        for (size_t h = 0; h < 2; ++h)
            block.half[h] =
                fit_f16(row + g * 256 + h * 128, 128, (1 << width) - 1, codes + h * 128);
        pack<width>(codes, 256, block.codes);
    }
}

void mq4c(const float* row, size_t cols, std::byte* out, std::byte*) {
    one_f16_pair<Mq4cBlock, 256>(row, cols, out);
}

void mq4_g128_v2(const float* row, size_t cols, std::byte* out, std::byte*) {
    one_f16_pair<Mq4g128V2Block, 128>(row, cols, out);
}

/// Codes are chosen by f32 numbers, which are then truncated.
void q4_f16(const float* row, size_t cols, std::byte* out, std::byte*) {
    uint8_t codes[64];
    for (size_t g = 0; g < cols / 64; ++g) {
        auto& block = block_at<Q4F16Block>(out, g);
        const F32Pair pair = fit_f32(row + g * 64, 64, 15, codes);
        block.all = {cpu::f32_to_f16_truncated(pair.scale), cpu::f32_to_f16_truncated(pair.zero)};
        for (size_t j = 0; j < 32; ++j) block.nibbles[j] = uint8_t(codes[j] | codes[j + 32] << 4);
    }
}

template void affine<2, 128>(const float*, size_t, std::byte*, std::byte*);
template void affine<3, 128>(const float*, size_t, std::byte*, std::byte*);
template void affine<4, 128>(const float*, size_t, std::byte*, std::byte*);
template void affine<2, 256>(const float*, size_t, std::byte*, std::byte*);
template void affine<3, 256>(const float*, size_t, std::byte*, std::byte*);
template void affine<4, 256>(const float*, size_t, std::byte*, std::byte*);
template void affine<5, 256>(const float*, size_t, std::byte*, std::byte*);
template void affine<6, 256>(const float*, size_t, std::byte*, std::byte*);
template void affine_v2<2>(const float*, size_t, std::byte*, std::byte*);
template void affine_v2<3>(const float*, size_t, std::byte*, std::byte*);
template void affine_v2<4>(const float*, size_t, std::byte*, std::byte*);
template void affine_v2<5>(const float*, size_t, std::byte*, std::byte*);
template void affine_v2<6>(const float*, size_t, std::byte*, std::byte*);

}  // namespace hf::quantize
