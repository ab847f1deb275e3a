// Encoders against golden bytes, and what they must refuse.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <set>

#include "cpuexec/float16.h"
#include "cpuexec/formats/e8.h"
#include "cpuexec/formats/float8.h"
#include "cpuexec/fwht.h"
#include "libcore/base/error.h"
#include "libcore/codec/decode.h"
#include "libcore/quantize/encoder.h"
#include "tests/support/data.h"

namespace hf {
namespace {

using Bytes = std::vector<std::byte>;

/// A packed matrix: rows, and a `scales` sidecar behind them.
Bytes encode(const Encoder& encoder, const std::vector<float>& w, Shape shape) {
    Bytes out(tensor_bytes(*encoder.codec, shape), std::byte(0xa5));
    const size_t rows_bytes = shape.rows * encoder.codec->row_bytes(shape.cols);
    encode_rows(encoder, w.data(), shape.rows, shape.cols, out.data(), out.data() + rows_bytes,
                "w");
    return out;
}

std::vector<float> decode(const Codec& codec, const Bytes& bytes, Shape shape) {
    std::vector<float> w(shape.rows * shape.cols);
    const cpu::WeightView W = view_of(codec, bytes.data(), shape);
    for (size_t r = 0; r < shape.rows; ++r)
        decode_original(codec, W, r, {w.data() + r * shape.cols, shape.cols});
    return w;
}

/// Weights that the format takes: any, or three values for a format that holds no more.
std::vector<float> random_weights(const Encoder& encoder, size_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0, 0.02f);
    std::vector<float> w(count);
    for (float& v : w) {
        v = normal(random);
        if (encoder.fits) v = v > 0.01f ? 0.25f : v < -0.01f ? -0.25f : 0.0f;
    }
    return w;
}

std::string golden(const Codec& codec, const char* what) {
    return test::data_path(fmt::format("codecs/qt{:02}_{}.{}", codec.ids.hfq, codec.name, what));
}

/// Formats whose encoders have no golden bytes, and what holds them instead.
const std::set<std::string_view> kWithoutGolden = {
    "bf16",                                                 // the golden rows of its decoder
    "mfp4g32e8", "mfp4g32e8soa", "mfp3g32e8", "mfp2g32e8",  // the nearest points of E8
};

/// The bytes that differ. Whether the levels of a group of zeros are 0 or -0 depends on how zeros
/// are sorted, which is nobody's rule: in one format one such sign differs.
size_t differences(const Bytes& bytes, const std::string& expected) {
    size_t count = 0;
    for (size_t i = 0; i < expected.size(); ++i) count += bytes[i] != std::byte(expected[i]);
    return count;
}

TEST_CASE("encoders write the golden bytes") {
    const auto w = test::read_values<float>(test::data_path("codecs/encode.w.f32"));
    std::vector<float> signs = w;  // for the format of three levels
    for (float& v : signs) v = v > 0 ? 0.03125f : v < 0 ? -0.03125f : 0.0f;
    for (const Encoder& encoder : encoders()) {
        const Codec& codec = *encoder.codec;
        if (kWithoutGolden.contains(codec.name)) continue;
        CAPTURE(codec.name);
        const std::string expected = test::read_file(golden(codec, "enc.bin"));
        const Bytes bytes = encode(encoder, encoder.fits ? signs : w, {4, 512});
        REQUIRE(bytes.size() == expected.size());
        CHECK(differences(bytes, expected) == (codec.name == "mq3g256lloyd" ? 1 : 0));
        Bytes reference(bytes.size());
        std::memcpy(reference.data(), expected.data(), bytes.size());
        CHECK(decode(codec, bytes, {4, 512}) == decode(codec, reference, {4, 512}));
    }
}

TEST_CASE("every format with golden bytes has an encoder") {
    for (const Codec& codec : codecs()) {
        if (codec.ids.hfq < 0) continue;
        CAPTURE(codec.name);
        const bool has_golden = std::filesystem::exists(golden(codec, "enc.bin"));
        CHECK((encoder_of(codec) != nullptr) ==
              (has_golden || kWithoutGolden.contains(codec.name)));
    }
}

TEST_CASE("bf16 is written as it was read") {
    const Encoder& encoder = *encoder_of(*codec_by_name("bf16"));
    const auto w = test::read_values<float>(golden(*encoder.codec, "out.f32"));
    const std::string expected = test::read_file(golden(*encoder.codec, "in.bin"));
    const Bytes bytes = encode(encoder, w, {4, 512});
    CHECK(std::memcmp(bytes.data(), expected.data(), expected.size()) == 0);
}

TEST_CASE("rows encoded one by one give the bytes of all at once") {
    constexpr Shape shape{3, 512};
    for (const Encoder& encoder : encoders()) {
        const Codec& codec = *encoder.codec;
        CAPTURE(codec.name);
        const auto w = random_weights(encoder, shape.rows * shape.cols, /*seed=*/3);
        const Bytes expected = encode(encoder, w, shape);
        Bytes bytes(expected.size());
        const size_t row_bytes = codec.row_bytes(shape.cols);
        const size_t scales = shape.rows * row_bytes, row_scales = shape.cols / codec.group * 2;
        for (size_t r = 0; r < shape.rows; ++r) {
            Bytes row(row_bytes), row_sidecar(row_scales);
            encode_rows(encoder, &w[r * shape.cols], 1, shape.cols, row.data(), row_sidecar.data(),
                        "w", r);
            std::ranges::copy(row, bytes.begin() + std::ptrdiff_t(r * row_bytes));
            if (codec.sidecar == Sidecar::scales)
                std::ranges::copy(row_sidecar,
                                  bytes.begin() + std::ptrdiff_t(scales + r * row_scales));
        }
        CHECK(bytes == expected);
    }
}

TEST_CASE("ragged rows are packed like rows with zeros behind them") {
    for (const Encoder& encoder : encoders()) {
        const Codec& codec = *encoder.codec;
        if (!codec.pads_rows) continue;
        CAPTURE(codec.name);
        constexpr Shape ragged{2, 200}, whole{2, 256};
        const auto w = random_weights(encoder, 400, /*seed=*/5);
        std::vector<float> padded(512, 0.0f);
        for (size_t r = 0; r < 2; ++r) std::copy_n(&w[r * 200], 200, &padded[r * 256]);
        const Bytes bytes = encode(encoder, w, ragged);
        CHECK(bytes == encode(encoder, padded, whole));

        const auto back = decode(codec, bytes, ragged), all = decode(codec, bytes, whole);
        for (size_t r = 0; r < 2; ++r)
            CHECK(std::equal(&back[r * 200], &back[r * 200] + 200, &all[r * 256]));
    }
}

TEST_CASE("ragged rows are multiplied with activations that are padded before they are rotated") {
    for (const Encoder& encoder : encoders()) {
        const Codec& codec = *encoder.codec;
        if (!codec.pads_rows) continue;
        CAPTURE(codec.name);
        constexpr Shape shape{3, 200};
        const Bytes bytes = encode(encoder, random_weights(encoder, 600, /*seed=*/6), shape);
        const auto back = decode(codec, bytes, shape);
        const cpu::WeightView W = view_of(codec, bytes.data(), shape);
        std::vector<float> x = random_weights(encoder, 200, /*seed=*/7);
        x.resize(W.cols);
        std::vector<float> turned = x;
        if (codec.rotation != Rotation::none)
            cpu::rotate(cpu::Level::scalar, rotation_block(codec.rotation), x.data(), x.size(),
                        turned.data());
        float y[3];
        codec.cpu.dot[0][0](W, 0, 3, {turned.data(), turned.size(), 1}, y, 3);
        for (size_t r = 0; r < 3; ++r) {
            double sum = 0, w2 = 0, x2 = 0;
            for (size_t i = 0; i < 200; ++i) {
                const double w = double(back[r * 200 + i]);
                sum += w * double(x[i]);
                w2 += w * w;
                x2 += double(x[i]) * double(x[i]);
            }
            // Both sides rotated once, ten roundings; 32 in a lane and three in the fold
            CHECK(std::fabs(double(y[r]) - sum) <= (2 * 10 + 35) * 0x1p-24 * std::sqrt(w2 * x2));
        }
    }
}

/// The 240 shortest vectors of E8. A point is the nearest one of the lattice if none of the 240
/// around it is nearer: they are the faces of its Voronoi cell.
std::vector<std::array<float, 8>> e8_roots() {
    std::vector<std::array<float, 8>> roots;
    for (size_t i = 0; i < 8; ++i)
        for (size_t j = 0; j < i; ++j)
            for (int signs = 0; signs < 4; ++signs) {
                std::array<float, 8> root{};
                root[i] = signs & 1 ? 1 : -1;
                root[j] = signs & 2 ? 1 : -1;
                roots.push_back(root);
            }
    for (unsigned signs = 0; signs < 256; ++signs) {
        if (__builtin_parity(signs)) continue;
        std::array<float, 8> root{};
        for (size_t i = 0; i < 8; ++i) root[i] = signs >> i & 1 ? 0.5f : -0.5f;
        roots.push_back(root);
    }
    REQUIRE(roots.size() == 240);
    return roots;
}

/// How much nearer to x than `point` some lattice point around it is; negative when none is.
float advantage_of_others(const float* x, const float* point) {
    static const auto roots = e8_roots();
    float best = -INFINITY;
    for (const auto& root : roots) {
        float gain = 0;  // |x - p|^2 - |x - p - root|^2
        for (size_t i = 0; i < 8; ++i) gain += root[i] * (2 * (x[i] - point[i]) - root[i]);
        best = std::max(best, gain);
    }
    return best;
}

TEST_CASE("E8 encoders choose the nearest point of the lattice wherever it fits its fields") {
    struct Case {
        const char* name;
        float step;
        float low, high;  // coordinates that fit with a neighbour to spare
    };
    constexpr Case cases[] = {{"mfp4g32e8", 0.88f, -6, 7},
                              {"mfp4g32e8soa", 0.88f, -6, 7},
                              {"mfp3g32e8", 1.8f, -3, 2},
                              {"mfp2g32e8", 3.8f, -1, 0.5f}};
    for (const Case& c : cases) {
        const Codec& codec = *codec_by_name(c.name);
        constexpr Shape shape{16, 1024};
        const auto w = random_weights(*encoder_of(codec), shape.rows * shape.cols, /*seed=*/9);
        const Bytes bytes = encode(*encoder_of(codec), w, shape);
        const cpu::WeightView W = view_of(codec, bytes.data(), shape);
        size_t checked = 0;
        float worst = -INFINITY;
        for (size_t r = 0; r < shape.rows; ++r) {
            std::vector<float> x(shape.cols), stored(shape.cols);
            cpu::rotate(cpu::Level::scalar, 256, &w[r * shape.cols], shape.cols, x.data());
            codec.cpu.decode_row(W, r, stored.data());
            float largest = 0;
            for (float v : x) largest = std::max(largest, std::fabs(v));
            const std::byte* row = W.base + r * W.row_bytes;
            const float row_scale =
                cpu::f16_to_f32(uint16_t(unsigned(std::to_integer<uint8_t>(row[0])) |
                                         std::to_integer<unsigned>(row[1]) << 8));
            for (size_t i = 0; i < shape.cols; i += 8) {
                const size_t block = i / 32, nb = shape.cols / 32;
                const size_t block_bytes = (W.row_bytes - 16) / nb;
                const bool soa = codec.name == std::string_view("mfp4g32e8soa");
                const float scale = cpu::e4m3_hfq(
                    std::to_integer<uint8_t>(row[16 + block * (soa ? 1 : block_bytes)]));
                float units[8], point[8];
                bool fits = true;
                for (size_t k = 0; k < 8; ++k) {
                    units[k] = x[i + k] / (largest / 6) / scale / c.step;
                    point[k] = std::round(stored[i + k] / (row_scale * scale * c.step) * 2) / 2;
                    fits = fits && units[k] >= c.low && units[k] <= c.high;
                }
                if (!fits) continue;
                ++checked;
                worst = std::max(worst, advantage_of_others(units, point));
            }
        }
        MESSAGE(fmt::format("{}: {} points, others are nearer by at most {:.1e}", c.name, checked,
                            worst));
        CHECK(checked > 100);
        CHECK(worst < 1e-4f);  // float32 noise of units up to 7, squared
    }
}

TEST_CASE("what is not finite, or more than f16 can hold, is refused with its row") {
    for (const Encoder& encoder : encoders()) {
        const Codec& codec = *encoder.codec;
        CAPTURE(codec.name);
        for (float odd : {NAN, INFINITY, -INFINITY, 3e38f, -65536.0f}) {
            auto w = random_weights(encoder, 2 * 256, /*seed=*/1);
            std::fill(w.begin() + 256, w.end(), odd);
            if (encoder.takes_any) {
                CHECK_NOTHROW(encode(encoder, w, {2, 256}));
                continue;
            }
            Bytes out(tensor_bytes(codec, {2, 256}));
            std::string message;
            try {
                encode_rows(encoder, w.data(), 2, 256, out.data(),
                            out.data() + 2 * codec.row_bytes(256), "model: tensor 'w'", 40);
            } catch (const Error& e) {
                message = e.what();
            }
            CAPTURE(message);
            CHECK(message.starts_with("model: tensor 'w': row 41 "));
            CHECK(message.find(codec.name) != std::string::npos);
        }
    }
}

TEST_CASE("the format of three levels refuses a fourth, and levels that f16 does not have") {
    const Encoder& encoder = *encoder_of(*codec_by_name("mq2g256lloydu"));
    std::vector<float> w(512, 0.5f);
    w[0] = -0.5f, w[511] = 0.0f, w[300] = -0.0f;
    CHECK(decode(*encoder.codec, encode(encoder, w, {1, 512}), {1, 512}) == w);
    for (float v : {0.25f, 1 + 0x1p-20f}) {
        auto odd = w;
        odd[1] = v, odd[2] = 0;
        CHECK_THROWS_AS(encode(encoder, odd, {1, 512}), Error);
    }
}

TEST_CASE("the smallest weights are encoded without a fault") {
    for (const Encoder& encoder : encoders()) {
        if (encoder.fits) continue;
        CAPTURE(encoder.codec->name);
        for (float tiny : {0.0f, 1e-45f, 1e-38f, 1e-30f}) {
            std::vector<float> w(512, 0.0f);
            for (size_t i = 0; i < 512; i += 3) w[i] = i % 2 ? tiny : -tiny;
            const auto back = decode(*encoder.codec, encode(encoder, w, {1, 512}), {1, 512});
            for (float v : back) REQUIRE(std::fabs(v) <= std::max(100 * tiny, 0x1p-24f));
        }
    }
}

}  // namespace
}  // namespace hf
