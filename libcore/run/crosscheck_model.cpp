// The dots of a model's formats on its own weights.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>

#include <fmt/format.h>

#include "libcore/codec/decode.h"
#include "libcore/load/tensor_plan.h"
#include "libcore/run/crosscheck_dots.h"

namespace hf {
namespace {

constexpr size_t kMatricesOfFormat = 2, kRowsOfPart = 64;
constexpr uint64_t kMostWeights = uint64_t(64) << 20;

/// The largest matrices of each format, in the order of the model.
std::map<const Codec*, std::vector<PlannedTensor>> choose(const ModelFile& file) {
    const Architecture& arch = architecture_of(file);
    std::map<const Codec*, std::vector<PlannedTensor>> chosen;
    for (const PlannedTensor& p : plan_tensors(file, arch, arch.read_config(file)))
        if (p.row->use == Use::matrix) chosen[p.tensor->codec].push_back(p);
    for (auto& [codec, matrices] : chosen) {
        // insertion order decides between equals
        for (size_t k = 0; k < std::min(kMatricesOfFormat, matrices.size()); ++k) {
            const auto begin = matrices.begin() + ptrdiff_t(k);
            const auto largest = std::ranges::max_element(
                begin, matrices.end(), {},
                [](const PlannedTensor& p) { return p.shape.rows * p.shape.cols; });
            std::rotate(begin, largest, largest + 1);
        }
        if (matrices.size() > kMatricesOfFormat)
            matrices.erase(matrices.begin() + kMatricesOfFormat, matrices.end());
    }
    return chosen;
}

/// A matrix and an activation for it.
struct Product {
    explicit Product(const PlannedTensor& p)
        : tensor(*p.tensor),
          codec(*p.tensor->codec),
          view(view_of(codec, tensor.bytes.data(), p.shape,
                       p.levels ? p.levels->bytes.data() : nullptr)),
          rows(std::min<uint64_t>(p.shape.rows, std::max<uint64_t>(1, kMostWeights / view.cols))),
          raw(p.shape.cols) {
        std::mt19937_64 random(p.shape.cols);
        std::uniform_real_distribution<float> uniform(-1, 1);
        for (float& x : raw) x = uniform(random);
        if (p.awq_scale)
            awq_scale = decode_flat(*p.awq_scale->codec, p.awq_scale->bytes.data(), p.shape.cols);
    }

    /// One for each row.
    std::vector<DotReference> expected(cpu::Activations activations, cpu::ThreadPool& pool) const {
        const cpu::Prepare& how = codec.cpu.prepare;
        DotInput in = input(cpu::Level::scalar);
        if (activations != cpu::Activations::f32) in = for_integers(how, activations, in);
        std::vector<DotReference> all(rows);
        std::vector<std::vector<float>> decoded(pool.size(), std::vector<float>(view.cols));
        for_rows(pool, [&](size_t r0, size_t r1, unsigned member) {
            for (size_t r = r0; r < r1; ++r) {
                codec.cpu.decode_row(view, r, decoded[member].data());
                all[r] = dot_reference(how, activations, decoded[member], in);
            }
        });
        return all;
    }

    DotInput input(cpu::Level level) const { return dot_input(codec, level, raw, awq_scale); }

    template <class F>
    void for_rows(cpu::ThreadPool& pool, F&& f) const {
        pool.run(uint32_t((rows + kRowsOfPart - 1) / kRowsOfPart),
                 [&](uint32_t part, unsigned member) {
                     f(part * kRowsOfPart, std::min((part + 1) * kRowsOfPart, rows), member);
                 });
    }

    std::vector<float> computed(const OwnDot& own, cpu::ThreadPool& pool) const {
        const DotInput in = input(own.level);
        const PreparedColumns x(codec, own, {&in, 1});
        std::vector<float> y(rows, NAN);
        for_rows(pool, [&](size_t r0, size_t r1, unsigned) {
            own.dot(view, r0, r1, x.columns(0, 1), &y[r0], rows);
        });
        return y;
    }

    Where at(size_t row) const {
        return [=, this] { return fmt::format("{} row {}", tensor.name, row); };
    }

    const TensorView& tensor;
    const Codec& codec;
    cpu::WeightView view;
    size_t rows;
    std::vector<float> raw, awq_scale;
};

/// Functions with the same activations.
class FormatChecks {
  public:
    FormatChecks(const std::vector<Product>& products, cpu::Activations activations,
                 cpu::ThreadPool& pool)
        : products_(products), pool_(pool) {
        for (const Product& product : products)
            expected_.push_back(product.expected(activations, pool));
    }

    void check(const OwnDot& own, const OnRecord& on_record) {
        const std::string subject(products_[0].codec.name);
        const bool is_lowest = lowest_.empty();
        Comparison dot("model-dot", subject, own.variant);
        Comparison twins("model-twins", subject, own.variant);
        for (size_t p = 0; p < products_.size(); ++p) {
            const std::vector<float> y = products_[p].computed(own, pool_);
            if (is_lowest) lowest_.push_back(y);
            for (size_t r = 0; r < y.size(); ++r) {
                const DotReference& e = expected_[p][r];
                dot.add(y[r], e.value, e.allowed, e.magnitude, products_[p].at(r));
                twins.add_twins(y[r], lowest_[p][r], products_[p].at(r));
            }
        }
        on_record(dot.record());
        if (!is_lowest) on_record(twins.record());
    }

  private:
    const std::vector<Product>& products_;
    cpu::ThreadPool& pool_;
    std::vector<std::vector<DotReference>> expected_;
    std::vector<std::vector<float>> lowest_;  // what the lowest level gives
};

void check_format(const Codec& codec, const std::vector<Product>& products,
                  const CpuCheckOptions& options, cpu::ThreadPool& pool,
                  const OnRecord& on_record) {
    std::optional<FormatChecks> checks[cpu::kActivations];
    for (const OwnDot& own : own_dots(codec)) {
        const std::string why = why_skipped(own.level, options);
        if (!why.empty()) {
            on_record(skipped_check("model-dot", std::string(codec.name), own.variant, why));
            continue;
        }
        auto& of_activations = checks[size_t(own.activations)];
        if (!of_activations) of_activations.emplace(products, own.activations, pool);
        of_activations->check(own, on_record);
    }
}

}  // namespace

void crosscheck_model(const ModelFile& file, const CpuCheckOptions& options, cpu::ThreadPool& pool,
                      const OnRecord& on_record) {
    for (const auto& [codec, matrices] : choose(file)) {
        std::vector<Product> products;
        for (const PlannedTensor& p : matrices) products.emplace_back(p);
        check_format(*codec, products, options, pool, on_record);
    }
}

}  // namespace hf
