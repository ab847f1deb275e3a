// The checks of the CPU engine find what they are there for, and nothing passes by accident.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cpuexec/isa.h"
#include "libcore/codec/random_matrix.h"
#include "libcore/run/crosscheck_cpu.h"
#include "libcore/run/dot_oracle.h"
#include "tests/support/data.h"

namespace hf {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string nowhere() {
    return "nowhere";
}

TEST_CASE("a comparison passes when every value is within what is allowed, the limit included") {
    Comparison c("dot", "q4_0", "avx2/f32");
    c.add(1.5, 1, 0.5, 2, nowhere);
    c.add(-3, -3, 0, 3, [] { return std::string("exact"); });
    const CheckRecord r = c.record();
    CHECK(r.pass);
    CHECK(r.name() == "dot/q4_0/avx2/f32");
    CHECK(r.n == 2);
    CHECK(r.worst == 0.25);  // divided by the scale, as is the tolerance
    CHECK(r.tol == 0.25);
    CHECK(r.where == "nowhere");
    CHECK(r.reason.empty());
}

TEST_CASE("a comparison fails on one value too far, on NaN, on nothing, and on zeros alone") {
    const struct {
        std::vector<std::pair<double, double>> got_and_reference;
        const char* says;
    } cases[] = {
        {{{1, 1}, {1.11, 1}, {1, 1}}, "1 of 3"},
        {{{1, 1}, {kNan, 1}, {1.2, 1}}, "2 of 3"},
        {{{1, kNan}}, "1 of 1"},
        {{{kNan, kNan}}, "1 of 1"},
        {{{kInfinity, kInfinity}}, "1 of 1"},
        {{}, "nothing was compared"},
        {{{0, 0}, {0, -0.0}}, "zero"},
    };
    for (const auto& c : cases) {
        Comparison comparison("a", "b", "c");
        for (const auto& [got, reference] : c.got_and_reference)
            comparison.add(got, reference, 0.1, 1, nowhere);
        const CheckRecord r = comparison.record();
        CHECK_FALSE(r.pass);
        CHECK_MESSAGE(r.reason.find(c.says) != std::string::npos, r.reason);
    }
}

TEST_CASE(
    "the worst of a comparison is a NaN if there is one, else the largest share of its limit") {
    Comparison c("a", "b", "c");
    c.add(1.2, 1, 1, 1, [] { return std::string("a fifth"); });
    c.add(1.1, 1, 0.2, 1, [] { return std::string("half"); });
    c.add(9, 5, 10, 1, [] { return std::string("two fifths"); });
    CHECK(c.record().where == "half");
    c.add(kNan, 1, 1, 1, [] { return std::string("nan"); });
    c.add(100, 1, 1, 1, [] { return std::string("far"); });
    CHECK(c.record().where == "nan");
    CHECK(std::isnan(c.record().worst));
    CHECK_FALSE(c.record().pass);
}

TEST_CASE("twins have the same bits, so that zeros of two signs differ and NaNs are no twins") {
    const struct {
        float got, reference;
        bool pass;
    } cases[] = {{1, 1, true},      {1, std::nextafter(1.0f, 2.0f), false},
                 {0, -0.0f, false}, {kNan, kNan, false},
                 {kNan, 1, false},  {kInfinity, kInfinity, true}};
    for (const auto& c : cases) {
        Comparison comparison("twins", "b", "c");
        comparison.add_twins(2, 2, nowhere);
        comparison.add_twins(c.got, c.reference, nowhere);
        CHECK(comparison.record().pass == c.pass);
        CHECK(comparison.record().tol == 0);
    }
}

TEST_CASE("the exact rotation is that of the golden activations") {
    const auto golden = [](const char* name) {
        const auto floats =
            test::read_values<float>(test::data_path(std::string("codecs/gemv.") + name));
        return std::vector<double>(floats.begin(), floats.end());
    };
    const std::vector<double> x = golden("x.f32");
    for (size_t block : {128, 256}) {
        const std::vector<double> expected = golden(block == 128 ? "x_rot128.f32" : "x_rot256.f32");
        std::vector<double> out(x.size());
        rotate_exactly(block, x.data(), x.size(), out.data());
        for (size_t i = 0; i < x.size(); ++i) {
            double sum = 0;
            for (size_t j = i / block * block; j < (i / block + 1) * block; ++j)
                sum += std::fabs(x[j]);
            CHECK(std::fabs(out[i] - expected[i]) <=
                  rotation_budget(block) * sum / std::sqrt(double(block)));
        }
    }
}

TEST_CASE("a reference is the sum in double precision, and allows what its terms explain") {
    const std::vector<float> w = {1, -2, 3}, x = {0.5f, 0.25f, -4};
    const DotReference r =
        dot_reference({}, cpu::Activations::f32, w, {x, {0.5, 0.25, -4}, {0, 0, 0}});
    CHECK(r.value == -12);
    CHECK(r.magnitude == 13);
    CHECK(r.allowed == doctest::Approx(4 * 0x1p-24 * 13));  // one lane, three folds
    const DotReference with_error =
        dot_reference({}, cpu::Activations::f32, w, {x, {0.5, 0.25, -4}, {0, 0.5, 0}});
    CHECK(with_error.allowed == doctest::Approx(1 + 4 * 0x1p-24 * 14));
}

TEST_CASE("random matrices are numbers of sensible size in every format, and repeat") {
    for (const Codec& codec : codecs()) {
        CAPTURE(codec.name);
        const Shape shape{3, 512};
        const std::vector<float> levels = random_levels(1);
        std::vector<std::byte> a(tensor_bytes(codec, shape)), b(a.size(), std::byte(0x55));
        fill_random(codec, shape, 5, levels.data(), a.data());
        fill_random(codec, shape, 5, levels.data(), b.data());
        CHECK(a == b);
        fill_random(codec, shape, 6, levels.data(), b.data());
        CHECK(a != b);
        const cpu::WeightView W =
            view_of(codec, a.data(), shape, reinterpret_cast<const std::byte*>(levels.data()));
        std::vector<float> row(W.cols);
        size_t odd_numbers = 0;
        for (size_t r = 0; r < W.rows; ++r) {
            codec.cpu.decode_row(W, r, row.data());
            for (float w : row) {
                CHECK(std::fabs(w) < 2000);
                int exponent;
                const float significand = std::frexp(w, &exponent);
                odd_numbers += significand * 16 != std::round(significand * 16);
            }
        }
        // Scales of 8 bits leave weights with few
        const bool has_short_scales = codec.name == "mxfp4" || codec.name == "nvfp4";
        if (!has_short_scales) CHECK(odd_numbers > W.rows * W.cols / 4);
    }
}

std::vector<CheckRecord> checked(const Codec& codec, cpu::Level highest = cpu::Level::amx) {
    std::vector<CheckRecord> records;
    crosscheck_codec(codec, {highest}, [&](const CheckRecord& r) { records.push_back(r); });
    return records;
}

/// Checks that failed.
std::string failed_checks(const Codec& codec) {
    std::string names;
    for (const CheckRecord& r : checked(codec))
        if (!r.pass && !r.skipped) names += (names.empty() ? "" : " ") + r.check;
    return names;
}

constexpr size_t kScalar = size_t(cpu::Level::scalar), kF32 = size_t(cpu::Activations::f32);

/// The f32 dot of a format, for functions that spoil it.
template <class Spoil>
void spoiled(const Codec& codec, const cpu::WeightView& W, size_t r0, size_t r1,
             const cpu::Columns& X, float* y, size_t y_stride, Spoil spoil) {
    codec.cpu.dot[kScalar][kF32](W, r0, r1, X, y, y_stride);
    for (size_t t = 0; t < X.count; ++t)
        for (size_t r = r0; r < r1; ++r) spoil(y[t * y_stride + r - r0], r, t);
}

const Codec& sound() {
    return *codec_by_name("q4_0");
}

TEST_CASE("each way to be wrong is found by the checks that are there for it") {
    REQUIRE(failed_checks(sound()).empty());
    const struct {
        cpu::Dot dot;
        const char* fails;
    } cases[] = {
        {[](const cpu::WeightView&, size_t, size_t, const cpu::Columns&, float*, size_t) {},
         "decode dot twins threads"},
        {[](const cpu::WeightView& W, size_t r0, size_t r1, const cpu::Columns& X, float* y,
            size_t s) {
             spoiled(sound(), W, r0, r1, X, y, s, [](float& v, size_t, size_t) { v = 0; });
         },
         "decode dot twins threads"},
        {[](const cpu::WeightView& W, size_t r0, size_t r1, const cpu::Columns& X, float* y,
            size_t s) {
             spoiled(sound(), W, r0, r1, X, y, s, [](float& v, size_t, size_t t) {
                 if (t == 8) v = kNan;
             });
         },
         "decode dot twins threads"},
        {[](const cpu::WeightView& W, size_t r0, size_t r1, const cpu::Columns& X, float* y,
            size_t s) {  // the last block is forgotten, if it is not the only one
             cpu::WeightView shorter = W;
             shorter.cols -= W.cols > 32 ? 32 : 0;
             sound().cpu.dot[kScalar][kF32](shorter, r0, r1, X, y, s);
         },
         "decode dot twins"},
        {[](const cpu::WeightView& W, size_t r0, size_t r1, const cpu::Columns& X, float* y,
            size_t s) {  // one rounding more
             spoiled(sound(), W, r0, r1, X, y, s,
                     [](float& v, size_t, size_t) { v = std::nextafter(v, 1e9f); });
         },
         "decode twins"},
        {[](const cpu::WeightView& W, size_t r0, size_t r1, const cpu::Columns& X, float* y,
            size_t s) {  // depends on where a piece begins
             spoiled(sound(), W, r0, r1, X, y, s, [=](float& v, size_t, size_t) {
                 if (r0 > 0) v = std::nextafter(v, 1e9f);
             });
         },
         "threads"},
    };
    for (const auto& c : cases) {
        Codec broken = sound();
        broken.cpu.dot[size_t(cpu::Level::avx2)][kF32] = c.dot;
        if (cpu::cpu_has(cpu::Level::avx2)) CHECK(failed_checks(broken) == std::string(c.fails));
    }
}

TEST_CASE("a format that is rotated and scaled is checked with both") {
    Codec halved = *codec_by_name("mq4g256");
    CHECK(failed_checks(halved).empty());
    // A dot of activations that are half of what they should be
    halved.cpu.dot[kScalar][kF32] = [](const cpu::WeightView& W, size_t r0, size_t r1,
                                       const cpu::Columns& X, float* y, size_t s) {
        std::vector<float> half(X.data, X.data + (X.count - 1) * X.stride + W.cols);
        for (float& x : half) x *= 0.5f;
        codec_by_name("mq4g256")->cpu.dot[kScalar][kF32](W, r0, r1,
                                                         {half.data(), X.stride, X.count}, y, s);
    };
    CHECK(failed_checks(halved).find("dot awq") != std::string::npos);
}

TEST_CASE("what cannot be checked is said with its reason, and is no pass") {
    size_t above = 0;
    for (const CheckRecord& r : checked(sound(), cpu::Level::scalar)) {
        if (!r.skipped) continue;
        CHECK_FALSE(r.pass);
        CHECK_FALSE(r.reason.empty());
        above += r.variant == "avx2/f32";
    }
    if (cpu::cpu_has(cpu::Level::avx2)) CHECK(above == 4);  // decode, dot, twins, threads
    Codec none = sound();
    none.cpu.dot = {};
    const std::vector<CheckRecord> records = checked(none);
    CHECK(records.size() == 3);  // f32, i16, int8
    CHECK(std::ranges::all_of(records, &CheckRecord::skipped));
    none.cpu.prepare = {};
    CHECK(checked(none).size() == 1);
}

TEST_CASE("the rotation holds its definition at each level") {
    std::vector<CheckRecord> records;
    crosscheck_rotation({}, [&](const CheckRecord& r) { records.push_back(r); });
    CHECK(records.size() == (cpu::cpu_has(cpu::Level::avx2) ? 8 : 6));
    for (const CheckRecord& r : records) {
        CAPTURE(r.name());
        CHECK((r.pass || r.skipped));
    }
}

}  // namespace
}  // namespace hf
