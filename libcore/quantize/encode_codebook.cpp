// *lloyd*, *gl: the nearest of a few levels, which are fitted to a group, counted, or given.
#include <algorithm>
#include <numeric>

#include "cpuexec/blocks.h"
#include "cpuexec/float16.h"
#include "cpuexec/formats/codebooks.h"
#include "libcore/quantize/encode.h"
#include "libcore/quantize/packing.h"

namespace hf::quantize {
namespace {

constexpr size_t kGroup = 256;
constexpr int kRounds = 8;  // the format's encoder stops here; more was measured to be worse

/// The places of n values, n up to 256, from the smallest value to the largest; equal values, such
/// as zeros of both signs, keep their order.
void sort_places(const float* x, size_t n, uint8_t* places) {
    std::iota(places, places + n, uint8_t(0));
    std::sort(places, places + n,
              [x](uint8_t a, uint8_t b) { return x[a] < x[b] || (x[a] == x[b] && a < b); });
}

/// One step of Lloyd's iteration: each level that is used moves to the mean of its values.
void move_levels(const float* x, const uint8_t* codes, float* levels, size_t count) {
    double sum[16] = {};
    uint32_t used[16] = {};
    for (size_t i = 0; i < kGroup; ++i) {
        sum[codes[i]] += double(x[i]);
        ++used[codes[i]];
    }
    for (size_t k = 0; k < count; ++k)
        if (used[k]) levels[k] = float(sum[k] / used[k]);
}

/// Sorts levels upwards and renames the codes.
void sort_levels(float* levels, size_t count, uint8_t* codes) {
    uint8_t order[16], name[16];
    float sorted[16];
    sort_places(levels, count, order);
    for (size_t k = 0; k < count; ++k) {
        sorted[k] = levels[order[k]];
        name[order[k]] = uint8_t(k);
    }
    std::copy_n(sorted, count, levels);
    for (size_t i = 0; i < kGroup; ++i) codes[i] = name[codes[i]];
}

/// Levels and codes of a group (Lloyd, IEEE Trans. Inf. Theory 28, 1982), from start points evenly
/// spread over the sorted values.
void fit_levels(const float* x, float* levels, size_t count, uint8_t* codes) {
    uint8_t places[kGroup];
    sort_places(x, kGroup, places);
    for (size_t k = 0; k < count; ++k) {
        const double at = double(kGroup - 1) * double(2 * k + 1) / double(2 * count);
        levels[k] = x[places[size_t(at + 0.5)]];
    }
    std::fill_n(codes, kGroup, uint8_t(0));
    if (x[places[0]] == x[places[kGroup - 1]]) return;

    uint8_t before[kGroup];
    for (int round = 0; round < kRounds; ++round) {
        nearest(x, kGroup, levels, count, codes);
        if (round > 0 && std::equal(codes, codes + kGroup, before)) break;
        std::copy_n(codes, kGroup, before);
        move_levels(x, codes, levels, count);
    }
    sort_levels(levels, count, codes);
}

/// The different values of a group, upwards, with -0 as 0; at most four are counted.
size_t distinct_values(const float* x, float (&values)[4]) {
    size_t count = 0;
    for (size_t i = 0; i < kGroup && count < 4; ++i) {
        const float v = x[i] + 0.0f;
        float* at = std::lower_bound(values, values + count, v);
        if (at != values + count && *at == v) continue;
        std::copy_backward(at, values + count, values + count + 1);
        *at = v;
        ++count;
    }
    return count;
}

}  // namespace

template <unsigned width>
void lloyd(const float* row, size_t cols, std::byte* out, std::byte*) {
    constexpr size_t kCount = 1 << width;
    float levels[kCount];
    uint8_t codes[kGroup];
    for (size_t g = 0; g < cols / kGroup; ++g) {
        auto& block = block_at<LloydBlock<width>>(out, g);
        fit_levels(row + g * kGroup, levels, kCount, codes);
        for (size_t k = 0; k < kCount; ++k) block.level[k] = cpu::f32_to_f16(levels[k]);
        pack<width>(codes, kGroup, block.codes);
    }
}

bool has_three_levels(const float* row, size_t cols) {
    for (size_t g = 0; g < cols / kGroup; ++g) {
        float values[4];
        const size_t count = distinct_values(row + g * kGroup, values);
        if (count > 3) return false;
        for (size_t k = 0; k < count; ++k)
            if (cpu::f16_to_f32(cpu::f32_to_f16(values[k])) != values[k]) return false;
    }
    return true;
}

/// Exact; the last level is repeated to fill four.
void three_levels(const float* row, size_t cols, std::byte* out, std::byte*) {
    uint8_t codes[kGroup];
    for (size_t g = 0; g < cols / kGroup; ++g) {
        auto& block = block_at<LloydBlock<2>>(out, g);
        float values[4];
        const size_t count = distinct_values(row + g * kGroup, values);
        std::fill(values + count, values + 4, values[count - 1]);
        for (size_t k = 0; k < 4; ++k) block.level[k] = cpu::f32_to_f16(values[k]);
        nearest(row + g * kGroup, kGroup, values, count, codes);
        pack<2>(codes, kGroup, block.codes);
    }
}

/// The scale is the root mean square of the group.
template <unsigned width>
void gl(const float* row, size_t cols, std::byte* out, std::byte* scales) {
    float x[kGroup];
    uint8_t codes[kGroup];
    for (size_t g = 0; g < cols / kGroup; ++g) {
        double squares = 0;
        for (size_t i = 0; i < kGroup; ++i)
            squares += double(row[g * kGroup + i]) * double(row[g * kGroup + i]);
        const uint16_t scale = cpu::f32_to_f16(float(std::sqrt(squares / double(kGroup))));
        std::memcpy(scales + g * sizeof(scale), &scale, sizeof(scale));
        const float inv = inverse(cpu::f16_to_f32(scale));
        for (size_t i = 0; i < kGroup; ++i) x[i] = row[g * kGroup + i] * inv;
        nearest(x, kGroup, cpu::kGlLevels<width>, 1 << width, codes);
        pack<width>(codes, kGroup, block_at<GlBlock<width>>(out, g).codes);
    }
}

template void lloyd<2>(const float*, size_t, std::byte*, std::byte*);
template void lloyd<3>(const float*, size_t, std::byte*, std::byte*);
template void lloyd<4>(const float*, size_t, std::byte*, std::byte*);
template void gl<2>(const float*, size_t, std::byte*, std::byte*);
template void gl<3>(const float*, size_t, std::byte*, std::byte*);

}  // namespace hf::quantize
