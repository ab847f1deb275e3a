#include "libcore/load/budget.h"

#include <algorithm>

namespace hf {

std::string_view name_of(Spill spill) {
    constexpr std::string_view kNames[] = {"layers", "ffn"};
    return kNames[size_t(spill)];
}

std::string_view name_of(Exec exec) {
    constexpr std::string_view kNames[] = {"pcie", "cpu", "split"};
    return kNames[size_t(exec)];
}

uint64_t split_row(uint64_t rows, double share) {
    constexpr uint64_t kStep = 8;
    if (share <= 0) return 0;
    if (share >= 1) return rows;
    if (rows < 2 * kStep) return 0;
    const auto wanted = uint64_t(share * double(rows)) / kStep * kStep;
    return std::clamp(wanted, kStep, rows - kStep);
}

}  // namespace hf
