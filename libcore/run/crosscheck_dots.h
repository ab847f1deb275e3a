// What the checks of dots share: the functions of a format's table, and columns as they take them.
#pragma once

#include <string>
#include <vector>

#include "libcore/run/crosscheck_cpu.h"
#include "libcore/run/dot_oracle.h"

namespace hf {

/// A function of a format's table.
struct OwnDot {
    cpu::Level level;
    cpu::Activations activations;
    cpu::Dot dot;
    std::string variant;  // "avx2/f32"
};

/// All of them, by activations and level.
std::vector<OwnDot> own_dots(const Codec& codec);

/// Why a level cannot be checked; empty: it can.
std::string why_skipped(cpu::Level level, const CpuCheckOptions& options);

/// Columns as a dot takes them. What lies between two columns is NaN.
class PreparedColumns {
  public:
    PreparedColumns(const Codec& codec, const OwnDot& own, std::span<const DotInput> inputs);
    cpu::Columns columns(size_t first, size_t count) const {
        return {data_.data() + first * stride_, stride_, count};
    }

  private:
    size_t stride_;
    std::vector<float> data_;
};

}  // namespace hf
