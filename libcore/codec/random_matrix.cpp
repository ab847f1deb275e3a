#include "libcore/codec/random_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace hf {
namespace {

using Random = std::mt19937_64;

void fill_bytes(std::byte* out, size_t bytes, Random& random) {
    for (size_t i = 0; i < bytes; i += 8) {
        const uint64_t word = random();
        std::memcpy(out + i, &word, std::min<size_t>(8, bytes - i));
    }
}

/// f16 numbers from 2^-6 to 1, of any sign.
void fill_f16(std::byte* out, size_t count, Random& random) {
    for (size_t i = 0; i < count; ++i) {
        const auto half = uint16_t(0x2400 + random() % 0x1800 + random() % 2 * 0x8000);
        std::memcpy(out + 2 * i, &half, 2);
    }
}

/// Whether rows are a header and then one block per group, so that a group can be drawn alone.
bool has_blocks(const Codec& codec) {
    const auto bytes = [&codec](uint64_t groups) { return codec.row_bytes(groups * codec.group); };
    return bytes(2) - bytes(1) == bytes(1) - bytes(0);
}

/// Draws the groups of rows one by one.
class GroupSource {
  public:
    /// sidecar  what WeightView::sidecar of the whole matrix is; its first values serve any group
    GroupSource(const Codec& codec, const std::byte* sidecar)
        : codec_(codec),
          header_(codec.row_bytes(0)),
          bytes_(codec.row_bytes(codec.group) - header_),
          row_(header_ + bytes_),
          view_{row_.data(), 1, codec.group, row_.size(), sidecar},
          weights_(codec.group) {}

    void draw_row(size_t groups, std::byte* out, Random& random) {
        fill_bytes(out, header_, random);
        if (header_ > 0) fill_f16(out, 1, random);
        std::copy_n(out, header_, row_.data());
        for (size_t g = 0; g < groups; ++g) {
            do {
                fill_bytes(row_.data() + header_, bytes_, random);
            } while (!suits());
            std::copy_n(row_.data() + header_, bytes_, out + header_ + g * bytes_);
        }
    }

  private:
    /// Weights of sensible size that differ sensibly: a scale or a zero that is next to nothing
    /// beside the other would make denormal products, which are slow.
    bool suits() {
        codec_.cpu.decode_row(view_, 0, weights_.data());
        for (float w : weights_)
            if (std::isnan(w) || (w != 0 && std::fabs(w) < 0x1p-30f)) return false;
        const auto [least, most] = std::ranges::minmax(weights_);
        const float largest = std::max(-least, most);
        const bool differ = weights_.size() == 1 || most - least > 0x1p-6f;
        return differ && largest > 0x1p-6f && largest < 0x1p6f;
    }

    const Codec& codec_;
    size_t header_, bytes_;  // of a row, of a group
    std::vector<std::byte> row_;
    cpu::WeightView view_;
    std::vector<float> weights_;
};

}  // namespace

void fill_random(const Codec& codec, Shape shape, uint64_t seed, const float* levels,
                 std::byte* out) {
    Random random(seed);
    const cpu::WeightView W =
        view_of(codec, out, shape, reinterpret_cast<const std::byte*>(levels));
    const size_t rows_bytes = W.rows * W.row_bytes;
    if (const uint64_t bytes = sidecar_bytes(codec, shape); bytes > 0)
        fill_f16(W.base == out ? out + rows_bytes : out, bytes / 2, random);
    std::byte* row = out + (W.base - out);
    if (!has_blocks(codec)) {  // scales lie somewhere in a row, and f16 numbers suit all of it
        fill_f16(row, rows_bytes / 2, random);
        return;
    }
    GroupSource source(codec, W.sidecar);
    const size_t groups = (shape.cols + codec.group - 1) / codec.group;
    for (size_t r = 0; r < W.rows; ++r, row += W.row_bytes) source.draw_row(groups, row, random);
}

std::vector<float> random_levels(uint64_t seed) {
    Random random(seed);
    std::uniform_real_distribution<float> uniform(-2, 2);
    std::vector<float> levels(kLloydLevels);
    for (float& level : levels) level = uniform(random);
    std::ranges::sort(levels);
    return levels;
}

}  // namespace hf
