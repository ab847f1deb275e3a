#include "libcore/run/scan_weights.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

namespace hf {
namespace {

/// The levels of a format that keeps them in a tensor of their own, or null.
const std::byte* levels_of(const ModelFile& file, const TensorView& t) {
    constexpr std::string_view kEnd = ".weight";
    std::string stem = t.name;
    if (stem.ends_with(kEnd)) stem.resize(stem.size() - kEnd.size());
    const TensorView* levels = file.find(stem + ".lloyd_levels.weight");
    return levels && levels->bytes.size() == kLloydLevels * sizeof(float) ? levels->bytes.data()
                                                                          : nullptr;
}

bool can_decode(const TensorView& t, const std::byte* levels) {
    return t.codec && t.shape.cols % cols_unit(*t.codec) == 0 &&
           t.bytes.size() == tensor_bytes(*t.codec, t.shape) &&
           (levels || t.codec->sidecar != Sidecar::levels);
}

uint64_t damaged_groups(std::span<const float> row, size_t group) {
    uint64_t damaged = 0;
    for (size_t begin = 0; begin < row.size(); begin += group) {
        const auto weights = row.subspan(begin, std::min(group, row.size() - begin));
        damaged += std::ranges::any_of(weights, [](float w) { return !std::isfinite(w); });
    }
    return damaged;
}

DamagedTensor scan_tensor(const TensorView& t, const std::byte* levels, cpu::ThreadPool& pool) {
    const Codec& codec = *t.codec;
    const cpu::WeightView W = view_of(codec, t.bytes.data(), t.shape, levels);
    std::vector<std::vector<float>> rows(pool.size(), std::vector<float>(W.cols));
    std::atomic<uint64_t> damaged = 0, first_row = UINT64_MAX;
    const auto scan_row = [&](size_t r, std::span<float> row) {
        codec.cpu.decode_row(W, r, row.data());
        const uint64_t n = damaged_groups(row, codec.group);
        if (n == 0) return;
        damaged += n;
        for (uint64_t first = first_row; r < first;)
            if (first_row.compare_exchange_weak(first, r)) break;
    };
    constexpr size_t kRowsOfPart = 16;
    const uint32_t parts = uint32_t((W.rows + kRowsOfPart - 1) / kRowsOfPart);
    pool.run(parts, [&](uint32_t part, unsigned member) {
        const size_t first = part * kRowsOfPart;
        for (size_t r = first; r < std::min(first + kRowsOfPart, W.rows); ++r)
            scan_row(r, rows[member]);
    });
    return {&t, W.rows * ((W.cols + codec.group - 1) / codec.group), damaged, first_row};
}

}  // namespace

WeightScan scan_weights(const ModelFile& file, cpu::ThreadPool& pool, const Progress& on_progress) {
    uint64_t done = 0, total = 0;
    for (const TensorView& t : file.tensors) total += t.bytes.size();
    WeightScan scan;
    for (const TensorView& t : file.tensors) {
        const std::byte* levels = levels_of(file, t);
        if (can_decode(t, levels)) {
            const DamagedTensor found = scan_tensor(t, levels, pool);
            scan.tensors += 1;
            scan.groups += found.groups;
            if (found.damaged > 0) scan.damaged.push_back(found);
        } else {
            scan.skipped += 1;
        }
        done += t.bytes.size();
        if (on_progress) on_progress(done, total);
    }
    return scan;
}

}  // namespace hf
