// From a source model to an HFQ file: each tensor in its format, in blocks of rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cpuexec/thread_pool.h"
#include "libcore/base/progress.h"
#include "libcore/quantize/awq.h"
#include "libcore/quantize/hfq_writer.h"
#include "libcore/quantize/policy.h"
#include "libcore/quantize/source_model.h"

namespace hf {

/// A tensor of the new file.
struct OutputTensor {
    const SourceTensor* source = nullptr;
    const Codec* codec = nullptr;
    std::vector<float> awq;  // (cols) that its columns are multiplied with; empty: none
};

/// Formats and scales of all tensors of a model, in its order. Reads no weights.
///
/// sums    empty: no AWQ scales; else those of the matrices whose format takes them
/// Errors  hf::Error(usage): see choose_format and check_patterns; sums, but no format that takes
///         scales
std::vector<OutputTensor> plan_output(const SourceModel& model, const Policy& policy,
                                      const SquareSums& sums);

/// All tensors of one format.
struct FormatShare {
    const Codec* codec = nullptr;
    uint32_t tensors = 0;
    uint64_t weights = 0, bytes = 0;
};

struct QuantizeReport {
    std::vector<FormatShare> formats;  // most bytes first; scales beside weights count as f16
    uint32_t tensors = 0;
    uint64_t weights = 0;       // without scales
    uint64_t source_bytes = 0;  // of the tensors read; 0: they were made up
    uint64_t payload_bytes = 0, file_bytes = 0;
    double seconds = 0;  // of encoding and writing

    double bits_per_weight() const { return 8.0 * double(payload_bytes) / double(weights); }
    double source_mb_per_s() const { return double(source_bytes) / seconds * 1e-6; }
};

/// Writes the file. Rows are read, encoded and written in blocks, each by one thread; a row whose
/// source has the very format is copied. The bytes do not depend on the number of threads.
///
/// replace   whether a file of that name may be replaced
/// Memory    a few MB a thread, and what the system caches
/// Returns   nothing when `interrupt` became true: there is no file then
/// Errors    hf::Error: see HfqWriter; weights that a format cannot hold (encode_rows). There is no
///           file then.
std::optional<QuantizeReport> quantize_model(const SourceModel& model,
                                             std::span<const OutputTensor> tensors,
                                             const std::string& path, bool replace,
                                             cpu::ThreadPool& pool, const Progress& on_progress,
                                             const std::atomic<bool>& interrupt);

}  // namespace hf
