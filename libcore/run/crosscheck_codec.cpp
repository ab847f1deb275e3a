// One format's functions on random weights.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include <fmt/format.h>

#include "cpuexec/isa.h"
#include "libcore/codec/random_matrix.h"
#include "libcore/run/crosscheck_dots.h"

namespace hf {
namespace {

using Random = std::mt19937_64;

float uniform(Random& random, float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random);
}
float with_sign(Random& random, float x) {
    return random() % 2 ? x : -x;
}

/// Kinds of columns, by what a product can go wrong on.
struct Kind {
    const char* name;
    float (*draw)(Random& random, size_t i);
};
constexpr Kind kKinds[] = {
    {"ordinary", [](Random& r, size_t) { return uniform(r, -1, 1); }},
    {"ordinary", [](Random& r, size_t) { return uniform(r, -1, 1); }},
    {"1e4..6e4", [](Random& r, size_t) { return with_sign(r, uniform(r, 1e4f, 6e4f)); }},
    {"subnormal", [](Random& r, size_t) { return with_sign(r, uniform(r, 1e-42f, 1e-38f)); }},
    {"zero", [](Random&, size_t) { return 0.0f; }},
    {"outlier", [](Random& r, size_t i) { return i % 53 == 0 ? 1e4f : 1e-3f * uniform(r, -1, 1); }},
    {"mixed", [](Random& r, size_t) { return std::ldexp(uniform(r, -1, 1), int(r() % 30) - 20); }},
    {"ordinary", [](Random& r, size_t) { return uniform(r, -1, 1); }},
    {"ordinary", [](Random& r, size_t) { return uniform(r, -1, 1); }},
};
constexpr size_t kColumns = std::size(kKinds);

/// A column of each kind, on the way to a weight. Their rotation is the scalar one, which has the
/// same bits at every level.
std::vector<DotInput> draw_inputs(const Codec& codec, size_t cols, bool has_awq) {
    Random random(cols);
    std::vector<DotInput> all;
    std::vector<float> raw(cols), scale(has_awq ? cols : 0);
    for (float& s : scale) s = uniform(random, 0.5f, 2);
    for (const Kind& kind : kKinds) {
        for (size_t i = 0; i < cols; ++i) raw[i] = kind.draw(random, i);
        all.push_back(dot_input(codec, cpu::Level::scalar, raw, scale));
    }
    return all;
}

/// A random matrix at an odd address that ends with its memory, and what its rows mean.
struct Weights {
    Weights(const Codec& c, Shape s, uint64_t seed)
        : codec(c),
          shape(s),
          bytes(1 + tensor_bytes(c, s)),
          levels(random_levels(seed)),
          view(view_of(c, bytes.data() + 1, s, reinterpret_cast<std::byte*>(levels.data()))),
          decoded(view.rows * view.cols),
          inputs(draw_inputs(c, s.cols, false)) {
        fill_random(codec, shape, seed, levels.data(), bytes.data() + 1);
        for (size_t r = 0; r < view.rows; ++r)
            codec.cpu.decode_row(view, r, &decoded[r * view.cols]);
    }
    std::span<const float> row(size_t r) const {
        return std::span(decoded).subspan(r * view.cols, view.cols);
    }
    Where at(size_t r, const char* what) const {
        return
            [=, s = shape] { return fmt::format("({}, {}) row {}, {}", s.rows, s.cols, r, what); };
    }

    const Codec& codec;
    Shape shape;
    std::vector<std::byte> bytes;
    std::vector<float> levels;
    cpu::WeightView view;
    std::vector<float> decoded;  // (rows, view.cols)
    std::vector<DotInput> inputs;
};

/// One row or several, columns of one block, of a few, of many that no vector divides where the
/// format allows it.
std::vector<Shape> shapes_of(const Codec& codec) {
    const uint64_t unit = cols_unit(codec), many = unit < 128 ? 33 * unit : 9 * unit;
    const uint64_t few = unit < codec.group ? 3 * codec.group + unit : 3 * unit;
    return {{1, unit}, {7, few}, {13, many}, {1, 4096}};
}

class CodecChecks {
  public:
    CodecChecks(const Codec& codec, const CpuCheckOptions& options, const OnRecord& on_record)
        : codec_(codec), options_(options), on_record_(on_record), dots_(own_dots(codec)) {
        uint64_t seed = 1;
        for (Shape shape : shapes_of(codec))
            weights_.push_back(std::make_unique<Weights>(codec, shape, seed++));
    }

    void run() {
        for (const OwnDot& own : dots_)
            if (own.activations == cpu::Activations::f32) with(own, "decode", &CodecChecks::decode);
        for (const OwnDot& own : dots_) with(own, "dot", &CodecChecks::dot);
        for (const OwnDot& own : dots_)
            if (own.activations != cpu::Activations::f32)
                with(own, "integers", &CodecChecks::integers);
        for (const OwnDot& own : dots_)
            if (codec_.takes_awq) with(own, "awq", &CodecChecks::awq);
        for (const OwnDot& own : dots_) with(own, "twins", &CodecChecks::twins);
        for (const OwnDot& own : dots_) with(own, "threads", &CodecChecks::threads);
        report_missing();
    }

  private:
    using Check = void (CodecChecks::*)(const OwnDot&, Comparison&);

    void with(const OwnDot& own, const char* check, Check body) {
        const std::string subject(codec_.name), why = why_skipped(own.level, options_);
        if (!why.empty()) return on_record_(skipped_check(check, subject, own.variant, why));
        Comparison comparison(check, subject, own.variant);
        (this->*body)(own, comparison);
        on_record_(comparison.record());
    }

    void report_missing() {
        for (const auto a :
             {cpu::Activations::f32, cpu::Activations::i16, cpu::Activations::int8}) {
            const bool is_wanted = a == cpu::Activations::f32 || codec_.cpu.prepare.has_integers();
            if (is_wanted && !pick_dot(codec_.cpu, cpu::Level::scalar, a))
                on_record_(skipped_check("dot", std::string(codec_.name),
                                         fmt::format("scalar/{}", cpu::name(a)),
                                         "the format has no such dot"));
        }
    }

    /// y[t * rows + r] of the first rows.
    static std::vector<float> product(const Weights& w, size_t rows, const OwnDot& own,
                                      const PreparedColumns& x, size_t first, size_t count) {
        std::vector<float> y(count * rows, NAN);
        own.dot(w.view, 0, rows, x.columns(first, count), y.data(), rows);
        return y;
    }

    void decode(const OwnDot& own, Comparison& comparison) {
        const Weights& w = *weights_[1];
        constexpr size_t kRows = 2;  // enough for a function to mistake one for the other
        for (size_t begin = 0; begin < w.view.cols; begin += kColumns) {
            std::vector<DotInput> units(std::min(kColumns, w.view.cols - begin));
            for (size_t t = 0; t < units.size(); ++t) {
                units[t].x.resize(w.view.cols);
                units[t].x[begin + t] = 1;
            }
            const PreparedColumns x(codec_, own, units);
            const std::vector<float> y = product(w, kRows, own, x, 0, units.size());
            for (size_t t = 0; t < units.size(); ++t)
                for (size_t r = 0; r < kRows; ++r) {
                    const float weight = w.row(r)[begin + t];
                    comparison.add(y[t * kRows + r], weight, 0, 0, [&] {
                        return fmt::format("({}, {}) row {}, column {}", w.shape.rows, w.shape.cols,
                                           r, begin + t);
                    });
                }
        }
    }

    using Change = DotInput (*)(const cpu::Prepare&, cpu::Activations, DotInput);

    /// change  what the reference is to know of the activations' preparation, or null
    void against_oracle(const OwnDot& own, bool has_awq, Change change, Comparison& comparison) {
        const cpu::Prepare& how = codec_.cpu.prepare;
        for (const auto& w : weights_) {
            std::vector<DotInput> in =
                has_awq ? draw_inputs(codec_, w->shape.cols, true) : w->inputs;
            const PreparedColumns x(codec_, own, in);
            const std::vector<float> y = product(*w, w->view.rows, own, x, 0, kColumns);
            for (size_t t = 0; t < kColumns; ++t) {
                if (change) in[t] = change(how, own.activations, std::move(in[t]));
                for (size_t r = 0; r < w->view.rows; ++r) {
                    const DotReference expected =
                        dot_reference(how, own.activations, w->row(r), in[t]);
                    comparison.add(y[t * w->view.rows + r], expected.value, expected.allowed,
                                   expected.magnitude, w->at(r, kKinds[t].name));
                }
            }
        }
    }
    static Change rounding(const OwnDot& own) {
        return own.activations == cpu::Activations::f32 ? nullptr : for_integers;
    }
    void dot(const OwnDot& own, Comparison& comparison) {
        against_oracle(own, false, rounding(own), comparison);
    }
    void awq(const OwnDot& own, Comparison& comparison) {
        against_oracle(own, true, rounding(own), comparison);
    }
    void integers(const OwnDot& own, Comparison& comparison) {
        against_oracle(own, false, as_integers, comparison);
    }

    /// The scalar dot of the same activations.
    const OwnDot& scalar_of(const OwnDot& own) const {
        return *std::ranges::find(dots_, own.activations, &OwnDot::activations);
    }

    void twins(const OwnDot& own, Comparison& comparison) {
        const OwnDot& scalar = scalar_of(own);
        for (const auto& w : weights_) {
            const PreparedColumns x(codec_, own, w->inputs), scalar_x(codec_, scalar, w->inputs);
            const size_t rows = w->view.rows;
            std::vector<float> expected;
            for (size_t t = 0; t < kColumns; ++t) {
                const std::vector<float> y = product(*w, rows, scalar, scalar_x, t, 1);
                expected.insert(expected.end(), y.begin(), y.end());
            }
            for (size_t count : {size_t(1), size_t(4), kColumns})
                for (size_t first = 0; first + count <= kColumns;
                     first += std::min(count, size_t(5))) {
                    const std::vector<float> y = product(*w, rows, own, x, first, count);
                    for (size_t i = 0; i < y.size(); ++i)
                        comparison.add_twins(y[i], expected[first * rows + i],
                                             w->at(i % rows, kKinds[first + i / rows].name));
                }
        }
    }

    void threads(const OwnDot& own, Comparison& comparison) {
        constexpr size_t kRowsOfPart = 4;
        const Weights& w = *weights_[2];
        const PreparedColumns x(codec_, own, w.inputs);
        const size_t rows = w.view.rows;
        const std::vector<float> expected = product(w, rows, own, x, 0, kColumns);
        for (unsigned members : {2u, 3u, 7u}) {
            cpu::ThreadPool pool(members);
            std::vector<float> y(expected.size(), NAN);
            pool.run(
                uint32_t((rows + kRowsOfPart - 1) / kRowsOfPart), [&](uint32_t part, unsigned) {
                    const size_t r0 = part * kRowsOfPart, r1 = std::min(r0 + kRowsOfPart, rows);
                    own.dot(w.view, r0, r1, x.columns(0, kColumns), y.data() + r0, rows);
                });
            for (size_t i = 0; i < y.size(); ++i)
                comparison.add_twins(y[i], expected[i], w.at(i % rows, kKinds[i / rows].name));
        }
    }

    const Codec& codec_;
    const CpuCheckOptions& options_;
    const OnRecord& on_record_;
    std::vector<OwnDot> dots_;
    std::vector<std::unique_ptr<Weights>> weights_;
};

}  // namespace

void crosscheck_codec(const Codec& codec, const CpuCheckOptions& options,
                      const OnRecord& on_record) {
    CodecChecks(codec, options, on_record).run();
}

}  // namespace hf
