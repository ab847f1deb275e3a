// A scan of a model's weights for numbers that no weight can be.
#pragma once

#include <cstdint>
#include <vector>

#include "cpuexec/thread_pool.h"
#include "libcore/base/progress.h"
#include "libcore/file/model_file.h"

namespace hf {

/// A tensor with groups that hold an infinity or a NaN. (A group has one scale, so that is what is
/// wrong with it; formats without scales have groups of one weight.)
struct DamagedTensor {
    const TensorView* tensor;
    uint64_t groups = 0, damaged = 0;
    uint64_t first_row = 0;  // the first with a damaged group
};

struct WeightScan {
    uint64_t tensors = 0, groups = 0;  // looked at
    uint64_t skipped = 0;              // tensors of types that have no decoder
    std::vector<DamagedTensor> damaged;
};

/// Decodes all weights of a model. Reads every byte of it, so it is as slow as the disk.
/// on_progress  called after each tensor with the bytes done and in all; may be empty
WeightScan scan_weights(const ModelFile& file, cpu::ThreadPool& pool, const Progress& on_progress);

}  // namespace hf
