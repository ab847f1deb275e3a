// Packed matrices for tests of the dots: random, at odd addresses, ending with readable memory.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "libcore/codec/codec.h"

namespace hf {

using Random = std::mt19937_64;
/// Memory that ends at a page which cannot be read: who reads behind it dies.
class GuardedMemory {
  public:
    explicit GuardedMemory(size_t bytes)
        : mapped_((bytes + kPage - 1) / kPage * kPage + kPage),
          begin_(static_cast<std::byte*>(
              mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
          data_(begin_ + mapped_ - kPage - bytes) {
        mprotect(begin_ + mapped_ - kPage, kPage, PROT_NONE);
    }
    GuardedMemory(const GuardedMemory&) = delete;
    ~GuardedMemory() { munmap(begin_, mapped_); }
    std::byte* get() const { return data_; }

  private:
    static constexpr size_t kPage = 4096;
    size_t mapped_;
    std::byte *begin_, *data_;
};

/// From 2^-6 to 1, of any sign.
inline uint16_t random_scale(Random& random) {
    return uint16_t(0x2400 + random() % 0x1800 + random() % 2 * 0x8000);
}

inline void fill(std::byte* out, size_t bytes, Random& random) {
    for (size_t i = 0; i < bytes; ++i) out[i] = std::byte(random());
}

inline void fill_scales(std::byte* out, size_t count, Random& random) {
    for (size_t i = 0; i < count; ++i) {
        const uint16_t scale = random_scale(random);
        std::memcpy(out + 2 * i, &scale, 2);
    }
}

/// A packed matrix whose last row ends with its memory. Rows are `gap` bytes further apart than
/// they must be; where that is odd, rows begin at addresses of any kind.
struct OddMatrix {
    OddMatrix(const Codec& codec, size_t rows, size_t cols, size_t gap, uint64_t seed)
        : row_bytes(codec.row_bytes(cols)),
          memory(rows * (row_bytes + gap) - gap),
          sidecar(sidecar_size(codec, rows, cols)),
          view{memory.get(), rows, activation_cols(codec, cols), row_bytes + gap,
               codec.sidecar == Sidecar::none ? nullptr : sidecar.get()} {
        Random random(seed);
        draw_sidecar(codec, sidecar_size(codec, rows, cols), random);
        for (size_t r = 0; r < rows; ++r) {
            std::byte* row = memory.get() + r * (row_bytes + gap);
            draw_row(codec, cols, row, random);
            if (r + 1 < rows) std::memset(row + row_bytes, 0xff, gap);  // NaN in most formats
        }
    }

    static size_t sidecar_size(const Codec& codec, size_t rows, size_t cols) {
        if (codec.sidecar == Sidecar::levels) return kLloydLevels * sizeof(float);
        return codec.sidecar == Sidecar::none ? 0 : sidecar_bytes(codec, {rows, cols});
    }

    /// f16 numbers, or float32 levels.
    void draw_sidecar(const Codec& codec, size_t bytes, Random& random) {
        fill_scales(sidecar.get(), bytes / 2, random);
        for (size_t k = 0; k < kLloydLevels && codec.sidecar == Sidecar::levels; ++k) {
            const float level = float(k) + 0.25f;
            std::memcpy(sidecar.get() + k * sizeof(float), &level, sizeof(float));
        }
    }

    /// Random bytes with sensible scales. Where these lie is asked of the format, except in rows
    /// that keep all scales before all codes.
    void draw_row(const Codec& codec, size_t cols, std::byte* row, Random& random) {
        const size_t header = codec.row_bytes(0);
        fill(row, row_bytes, random);
        if (header) fill_scales(row, 1, random);
        if (codec.name == "q8hfq") fill_scales(row, cols / 32, random);
        if (codec.name == "q8hfq" || codec.name == "mfp4g32e8soa")
            return;  // any 8-bit scale will do
        for (size_t c = 0; c < cols; c += codec.group)
            draw_group(codec, row, row + codec.row_bytes(c), random);
    }

    /// Random bytes, drawn again until the weights are numbers of a sensible size.
    void draw_group(const Codec& codec, const std::byte* row, std::byte* out, Random& random) {
        const size_t header = codec.row_bytes(0), bytes = codec.row_bytes(codec.group) - header;
        std::vector<std::byte> alone(header + bytes);
        std::copy_n(row, header, alone.data());
        std::vector<float> w(codec.group);
        float largest;
        do {
            fill(alone.data() + header, bytes, random);
            codec.cpu.decode_row({alone.data(), 1, codec.group, header + bytes, view.sidecar}, 0,
                                 w.data());
            largest = 0;
            for (float v : w) largest = std::isnan(v) ? v : std::max(largest, std::fabs(v));
        } while (!(largest > 0x1p-6f && largest < 0x1p6f));
        std::copy_n(alone.data() + header, bytes, out);
    }

    size_t row_bytes;
    GuardedMemory memory, sidecar;
    cpu::WeightView view;
};

/// `count` columns, each ending where its cols end; the last one ends the vector.
inline std::vector<float> random_columns(size_t cols, size_t count, size_t stride, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> x((count - 1) * stride + cols, NAN);
    for (size_t t = 0; t < count; ++t)
        for (size_t i = 0; i < cols; ++i) x[t * stride + i] = uniform(random);
    x.shrink_to_fit();
    return x;
}

inline std::vector<size_t> sizes_of(const Codec& codec) {
    std::vector<size_t> all = {1, 7, 9, 33, 32, 64, 96, 512, 1056, 1280, 2048}, fitting;
    for (size_t cols : all)
        if (cols % cols_unit(codec) == 0) fitting.push_back(cols);
    return fitting;
}

inline bool same_bits(float a, float b) {
    return std::memcmp(&a, &b, sizeof(float)) == 0;
}

}  // namespace hf
