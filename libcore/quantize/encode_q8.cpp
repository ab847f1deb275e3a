// q8_0, q8hfq, mq8g256, tq2g128, bq1g128: integers of a byte, of two bits and of one, with a scale.
#include "cpuexec/blocks.h"
#include "cpuexec/float16.h"
#include "cpuexec/formats/formats.h"
#include "libcore/quantize/encode.h"
#include "libcore/quantize/packing.h"

namespace hf::quantize {

void q8_0(const float* row, size_t cols, std::byte* out, std::byte*) {
    cpu::encode_q8_0(row, cols, out);
}

/// The blocks of q8_0, taken apart.
void q8hfq(const float* row, size_t cols, std::byte* out, std::byte*) {
    const size_t blocks = cols / 32, used = blocks * sizeof(uint16_t) + cols;
    for (size_t b = 0; b < blocks; ++b) {
        Q8_0Block block;
        cpu::encode_q8_0(row + b * 32, 32, reinterpret_cast<std::byte*>(&block));
        std::memcpy(out + b * sizeof(uint16_t), &block.scale, sizeof(uint16_t));
        std::memcpy(out + blocks * sizeof(uint16_t) + b * 32, block.q, 32);
    }
    std::memset(out + used, 0, (used + 127) / 128 * 128 - used);
}

/// The scale is truncated after the integers were chosen by it.
void mq8(const float* row, size_t cols, std::byte* out, std::byte*) {
    for (size_t g = 0; g < cols / 256; ++g, row += 256) {
        auto& block = block_at<Mq8Block>(out, g);
        const float largest = largest_magnitude(row, 256);
        const float inv = inverse(largest, 127);
        block.scale = cpu::f32_to_f16_truncated(largest > 0 ? largest / 127 : 1);
        for (size_t i = 0; i < 256; ++i) block.q[i] = int8_t(round_to(row[i] * inv, -128, 127));
    }
}

/// For weights that are ternary already.
void ternary(const float* row, size_t cols, std::byte* out, std::byte*) {
    uint8_t codes[128];
    for (size_t g = 0; g < cols / 128; ++g, row += 128) {
        auto& block = block_at<TernaryBlock<2>>(out, g);
        const float largest = largest_magnitude(row, 128), inv = inverse(largest);
        block.scale = cpu::f32_to_f16_truncated(largest);
        for (size_t i = 0; i < 128; ++i) codes[i] = uint8_t(round_to(row[i] * inv, -1, 1) + 1);
        pack<2>(codes, 128, block.codes);
    }
}

/// The scale is the mean magnitude, summed in float32 in order.
void binary(const float* row, size_t cols, std::byte* out, std::byte*) {
    uint8_t codes[128];
    for (size_t g = 0; g < cols / 128; ++g, row += 128) {
        auto& block = block_at<TernaryBlock<1>>(out, g);
        float sum = 0;
        for (size_t i = 0; i < 128; ++i) {
            sum += std::fabs(row[i]);
            codes[i] = row[i] >= 0;
        }
        block.scale = cpu::f32_to_f16_truncated(sum / 128);
        pack<1>(codes, 128, block.codes);
    }
}

}  // namespace hf::quantize
