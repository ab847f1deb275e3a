// Formats as they are used: rows in their own basis, and products with prepared activations.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cpuexec/float16.h"
#include "cpuexec/fwht.h"
#include "cpuexec/isa.h"
#include "libcore/codec/decode.h"
#include "tests/support/data.h"

namespace hf {
namespace {

using Floats = std::vector<float>;

/// A golden matrix of 4 x 512, and what the index of the golden files says about it.
struct Golden {
    explicit Golden(const nlohmann::json& entry)
        : facts(entry), codec(*codec_by_hfq(entry["format_id"].get<uint32_t>())) {
        bytes = file("in");
        if (facts.contains("side")) levels = file("side");
        view = view_of(codec, reinterpret_cast<const std::byte*>(bytes.data()), shape,
                       reinterpret_cast<const std::byte*>(levels.data()));
    }
    std::string file(const char* what) const {
        return test::read_file(test::data_path("codecs/" + facts[what]["file"].get<std::string>()));
    }
    nlohmann::json facts;
    const Codec& codec;
    Shape shape{4, 512};
    std::string bytes, levels;
    cpu::WeightView view;
};

std::vector<Golden> golden_matrices() {
    const auto index = nlohmann::json::parse(test::read_file(test::data_path("codecs/index.json")));
    std::vector<Golden> all;
    for (const auto& entry : index["formats"]) all.emplace_back(entry);
    return all;
}

Floats golden_x() {
    return test::read_values<float>(test::data_path("codecs/gemv.x.f32"));
}

Floats golden_scale() {
    Floats scale;
    for (uint16_t half : test::read_values<uint16_t>(test::data_path("codecs/gemv.awq.f16")))
        scale.push_back(cpu::f16_to_f32(half));
    return scale;
}

/// x as a weight of this format wants to meet it.
Floats prepared(const Codec& codec, Floats x) {
    if (codec.rotation != Rotation::none)
        cpu::rotate(cpu::Level::scalar, rotation_block(codec.rotation), x.data(), x.size(),
                    x.data());
    return x;
}

struct Sum {
    double value = 0, magnitude = 0;
};
Sum product(const Floats& w, const Floats& x) {
    Sum sum;
    for (size_t i = 0; i < w.size(); ++i) {
        sum.value += double(w[i]) * double(x[i]);
        sum.magnitude += std::fabs(double(w[i]) * double(x[i]));
    }
    return sum;
}

Floats decoded(const Golden& g, size_t row) {
    Floats w(g.shape.cols);
    g.codec.cpu.decode_row(g.view, row, w.data());
    return w;
}

TEST_CASE("the table agrees with the index of the golden files") {
    for (const Golden& g : golden_matrices()) {
        CAPTURE(g.codec.name);
        CHECK(rotation_block(g.codec.rotation) ==
              std::max<uint64_t>(1, g.facts["rotation"].get<uint64_t>()));
        CHECK(g.codec.takes_awq == g.facts["awq_sidecar"].get<bool>());
        CHECK(g.codec.group == g.facts["group"].get<unsigned>());
        CHECK(tensor_bytes(g.codec, g.shape) == g.bytes.size());
    }
}

TEST_CASE("rotated formats give their golden weights in the basis of the model, bit for bit") {
    size_t rotated = 0;
    for (const Golden& g : golden_matrices()) {
        if (!g.facts.contains("unrot")) continue;
        CAPTURE(g.codec.name);
        ++rotated;
        const std::string expected = g.file("unrot");
        Floats row(g.shape.cols);
        for (size_t r = 0; r < g.shape.rows; ++r) {
            decode_original(g.codec, g.view, r, row);
            CHECK(std::memcmp(row.data(), expected.data() + r * row.size() * sizeof(float),
                              row.size() * sizeof(float)) == 0);
        }
    }
    CHECK(rotated == 26);
}

TEST_CASE("dots give the golden products, with AWQ scales too") {
    const Floats x = golden_x(), scale = golden_scale();
    Floats divided(x.size());
    cpu::divide(x.data(), scale.data(), x.size(), divided.data());
    for (const Golden& g : golden_matrices()) {
        CAPTURE(g.codec.name);
        for (const char* key : {"gemv_y", "gemv_y_awq"}) {
            if (!g.facts.contains(key)) continue;
            const Floats in = prepared(g.codec, key == std::string("gemv_y") ? x : divided);
            for (size_t level = 0; level < 2; ++level) {
                if (!cpu::cpu_has(cpu::Level(level))) continue;
                float y[4];
                g.codec.cpu.dot[level][0](g.view, 0, 4, {in.data(), in.size(), 1}, y, 4);
                for (size_t r = 0; r < 4; ++r) {
                    const double expected = g.facts[key][r];
                    if (std::fabs(expected) > 3e38) continue;  // plain f32 holds such numbers
                    // 64 roundings in a lane, three when lanes are folded
                    const double allowed = 67 * 0x1p-24 * product(decoded(g, r), in).magnitude;
                    CHECK(std::fabs(double(y[r]) - expected) <= allowed);
                }
            }
        }
    }
}

TEST_CASE("rotated weights times rotated activations are weights times activations") {
    const Floats x = golden_x();
    for (const Golden& g : golden_matrices()) {
        if (g.codec.rotation == Rotation::none) continue;
        const Floats turned = prepared(g.codec, x);
        double worst = 0;
        for (size_t r = 0; r < g.shape.rows; ++r) {
            const Floats stored = decoded(g, r);
            Floats original(x.size());
            decode_original(g.codec, g.view, r, original);
            double norm_w = 0, norm_x = 0;
            for (size_t i = 0; i < x.size(); ++i) {
                norm_w += double(stored[i]) * double(stored[i]);
                norm_x += double(x[i]) * double(x[i]);
            }
            // Each side was rotated once: at most ten roundings of its norm
            const double allowed = 2 * 10 * 0x1p-24 * std::sqrt(norm_w * norm_x);
            const double error =
                std::fabs(product(stored, turned).value - product(original, x).value);
            worst = std::max(worst, allowed > 0 ? error / allowed : error);
        }
        MESSAGE(fmt::format("{}: {:.3f} of the allowed", g.codec.name, worst));
        CHECK(worst <= 1);
    }
}

TEST_CASE("what is no matrix is decoded as one run of groups, the last one filled up") {
    for (const char* name : {"f32", "q8_0", "hfq4g128", "hfq4g256", "mq4g256", "mq4g256v2"}) {
        CAPTURE(name);
        const Codec& codec = *codec_by_name(name);
        constexpr size_t kCount = 300;  // more than one group, and no multiple of it
        CHECK(flat_cols(codec, 512) == 512);
        const uint64_t cols = flat_cols(codec, kCount);
        CHECK(cols >= kCount);
        CHECK(cols % codec.group == 0);
        const std::string bytes = test::read_file(
            test::data_path(fmt::format("codecs/qt{:02}_{}.in.bin", codec.ids.hfq, name)));
        const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
        std::vector<std::byte> exact(begin, begin + tensor_bytes(codec, {1, cols}));
        Floats row(512);
        decode_original(codec, view_of(codec, begin, {4, 512}), 0, row);
        row.resize(kCount);
        CHECK(decode_flat(codec, exact.data(), kCount) == row);
    }
}

}  // namespace
}  // namespace hf
