#include "libcore/quantize/quantize_model.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>

#include "libcore/base/error.h"
#include "libcore/quantize/encoder.h"

namespace hf {
namespace {

/// Weights of a block, about: its float32 values stay in a core's cache.
constexpr uint64_t kBlockWeights = 1 << 16;
/// Weights after which mapped pages are given back: they are the file's, and would only look like
/// memory that we use.
constexpr uint64_t kForgetWeights = uint64_t(1) << 26;

const Codec& f16() {
    return *codec_by_name("f16");
}

std::string awq_name(std::string_view weight) {
    constexpr std::string_view kEnd = ".weight";
    if (weight.ends_with(kEnd)) weight.remove_suffix(kEnd.size());
    return fmt::format("{}.awq_scale.weight", weight);
}

bool can_copy(const OutputTensor& t) {
    return t.source->packed_row && t.source->codec == t.codec && t.awq.empty();
}

/// Consecutive rows of a tensor.
struct Block {
    uint32_t tensor;
    uint64_t first, count;
};

/// The new file's tensors, and where each one and its scales are in the index.
struct Layout {
    HfqHeader header;
    std::vector<size_t> places;
    std::vector<Block> blocks;
    uint64_t weights = 0;

    Layout(const SourceModel& model, std::span<const OutputTensor> tensors) {
        header.arch_id = model.arch_id;
        header.metadata = model.metadata;
        for (const OutputTensor& t : tensors) {
            const Shape shape = t.source->shape;
            places.push_back(header.tensors.size());
            header.tensors.push_back(
                {t.source->name, t.codec, t.source->dims, tensor_bytes(*t.codec, shape)});
            if (!t.awq.empty())
                header.tensors.push_back({awq_name(t.source->name),
                                          &f16(),
                                          {t.awq.size()},
                                          tensor_bytes(f16(), {1, t.awq.size()})});
            cut(shape);
        }
    }

    void cut(Shape shape) {
        const uint32_t tensor = uint32_t(places.size() - 1);
        const uint64_t rows = std::max<uint64_t>(1, kBlockWeights / shape.cols);
        for (uint64_t first = 0; first < shape.rows; first += rows)
            blocks.push_back({tensor, first, std::min(rows, shape.rows - first)});
        weights += shape.rows * shape.cols;
    }
};

/// What one thread works in.
struct Scratch {
    std::vector<float> values;
    std::vector<std::byte> rows, scales;
};

/// Reads, encodes and writes blocks.
struct Run {
    const SourceModel& model;
    std::span<const OutputTensor> tensors;
    const Layout& layout;
    HfqWriter& writer;
    const Progress& on_progress;
    const std::atomic<bool>& interrupt;
    std::vector<Scratch> scratch;  // of each member

    std::atomic<uint64_t> done = 0;  // weights
    std::atomic<bool> is_over = false;
    std::mutex mutex{};
    std::exception_ptr fault{};  // the first one

    void work(uint32_t block, unsigned member) {
        if (interrupt) is_over = true;
        if (is_over) return;
        try {
            do_block(layout.blocks[block], scratch[member]);
            if (member == 0 && on_progress) on_progress(done, layout.weights);
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!fault) fault = std::current_exception();
            is_over = true;
        }
    }

    void do_block(const Block& block, Scratch& s) {
        const OutputTensor& t = tensors[block.tensor];
        const uint64_t row_bytes = t.codec->row_bytes(t.source->shape.cols);
        s.rows.resize(block.count * row_bytes);
        if (can_copy(t))
            copy_rows(t, block, row_bytes, s);
        else
            encode(t, block, s);
        const size_t place = layout.places[block.tensor];
        writer.write(place, block.first * row_bytes, s.rows);
        if (t.codec->sidecar == Sidecar::scales)
            writer.write(place, t.source->shape.rows * row_bytes + block.first * scale_bytes(t),
                         s.scales);
        if (!t.awq.empty() && block.first == 0) write_awq(t, place + 1);
        forget_pages(block.count * t.source->shape.cols);
    }

    static uint64_t scale_bytes(const OutputTensor& t) {
        return sidecar_bytes(*t.codec, {1, t.source->shape.cols});
    }

    static void copy_rows(const OutputTensor& t, const Block& block, uint64_t row_bytes,
                          Scratch& s) {
        for (uint64_t r = 0; r < block.count; ++r)
            std::memcpy(s.rows.data() + r * row_bytes, t.source->packed_row(block.first + r).data(),
                        row_bytes);
    }

    void encode(const OutputTensor& t, const Block& block, Scratch& s) const {
        const uint64_t cols = t.source->shape.cols;
        s.values.resize(block.count * cols);
        for (uint64_t r = 0; r < block.count; ++r) {
            float* row = s.values.data() + r * cols;
            t.source->read_row(block.first + r, row);
            for (size_t k = 0; k < t.awq.size(); ++k) row[k] *= t.awq[k];
        }
        s.scales.resize(block.count * scale_bytes(t));
        encode_rows(*encoder_of(*t.codec), s.values.data(), block.count, cols, s.rows.data(),
                    s.scales.data(), fmt::format("{}: tensor '{}'", model.label, t.source->name),
                    block.first);
    }

    void write_awq(const OutputTensor& t, size_t place) const {
        std::vector<std::byte> bytes(tensor_bytes(f16(), {1, t.awq.size()}));
        encode_rows(*encoder_of(f16()), t.awq.data(), 1, t.awq.size(), bytes.data(), nullptr,
                    "scales");
        writer.write(place, 0, bytes);
    }

    /// Others may be reading: their pages come back from the cache.
    void forget_pages(uint64_t weights) {
        const uint64_t before = done.fetch_add(weights);
        if (before / kForgetWeights == (before + weights) / kForgetWeights || !model.file) return;
        for (const MappedFile& file : model.file->files) {
            const auto bytes = file.bytes();
            madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), MADV_DONTNEED);
        }
    }
};

QuantizeReport report_of(const Layout& layout, std::span<const OutputTensor> tensors) {
    QuantizeReport report;
    for (const HfqEntry& entry : layout.header.tensors) {
        auto share = std::ranges::find(report.formats, entry.codec, &FormatShare::codec);
        if (share == report.formats.end()) {
            report.formats.push_back({entry.codec});
            share = report.formats.end() - 1;
        }
        uint64_t weights = 1;
        for (const uint64_t dim : entry.dims) weights *= dim;
        ++share->tensors;
        share->weights += weights;
        share->bytes += entry.bytes;
        report.payload_bytes += entry.bytes;
    }
    std::ranges::sort(report.formats, std::greater(), &FormatShare::bytes);
    for (const OutputTensor& t : tensors) report.source_bytes += t.source->bytes;
    report.tensors = uint32_t(layout.header.tensors.size());
    report.weights = layout.weights;
    return report;
}

std::vector<float> scales_of(const SourceTensor& t, const SquareSums& sums) {
    const auto found = sums.find(t.stored_name);
    if (found == sums.end()) return {};
    std::vector<double> sum = found->second;
    HF_ASSERT(sum.size() == t.shape.cols);
    for (size_t k = 0; k < t.cols.size(); ++k) sum[k] = found->second[t.cols[k]];
    return awq_scales(sum);
}

}  // namespace

std::vector<OutputTensor> plan_output(const SourceModel& model, const Policy& policy,
                                      const SquareSums& sums) {
    check_patterns(policy, model);
    std::vector<OutputTensor> out;
    bool has_scales = false;
    for (const SourceTensor& t : model.tensors) {
        const Codec& codec = choose_format(policy, t, model.label);
        out.push_back({&t, &codec, {}});
        if (codec.takes_awq) out.back().awq = scales_of(t, sums);
        has_scales |= !out.back().awq.empty();
    }
    if (!sums.empty() && !has_scales)
        throw Error(fmt::format("--awq: no tensor gets a format that takes scales; {} takes none",
                                policy.format->name),
                    Fault::usage);
    return out;
}

std::optional<QuantizeReport> quantize_model(const SourceModel& model,
                                             std::span<const OutputTensor> tensors,
                                             const std::string& path, bool replace,
                                             cpu::ThreadPool& pool, const Progress& on_progress,
                                             const std::atomic<bool>& interrupt) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const Layout layout(model, tensors);
    HfqWriter writer(path, replace, layout.header);
    Run run{
        model, tensors, layout, writer, on_progress, interrupt, std::vector<Scratch>(pool.size())};
    pool.run(uint32_t(layout.blocks.size()),
             [&](uint32_t block, unsigned member) { run.work(block, member); });
    if (run.fault) std::rethrow_exception(run.fault);
    if (run.is_over) return std::nullopt;
    writer.finish();

    QuantizeReport report = report_of(layout, tensors);
    report.file_bytes = writer.file_bytes();
    report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return report;
}

}  // namespace hf
