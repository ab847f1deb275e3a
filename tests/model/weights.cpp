// Scans and comparisons of a model's weights.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/codec/decode.h"
#include "libcore/quantize/encoder.h"
#include "libcore/run/compare_weights.h"
#include "libcore/run/sampler.h"
#include "libcore/run/scan_weights.h"
#include "tests/support/data.h"

using namespace hf;
using namespace hf::test;

namespace {

/// One tensor in memory, its bytes exactly as large as they are.
struct OneTensor {
    ModelFile file;
    std::unique_ptr<std::byte[]> bytes;

    OneTensor(const char* format, Shape shape, std::span<const float> values) {
        const Codec& codec = *codec_by_name(format);
        const uint64_t size = tensor_bytes(codec, shape);
        bytes = std::make_unique<std::byte[]>(size);
        const uint64_t rows = shape.rows * codec.row_bytes(shape.cols);
        encode_rows(*encoder_of(codec), values.data(), shape.rows, shape.cols, bytes.get(),
                    bytes.get() + rows, "test");
        TensorView t;
        t.name = "w.weight";
        t.codec = &codec;
        t.dims = {shape.rows, shape.cols};
        t.n_dims = 2;
        t.shape = shape;
        t.bytes = {bytes.get(), size};
        file.tensors.push_back(t);
    }
};

std::vector<float> some_weights(size_t n, uint64_t seed) {
    Random random(seed);
    std::vector<float> w(n);
    for (float& x : w) x = float(random.uniform() * 2 - 1);
    return w;
}

WeightScan scan(const ModelFile& file, unsigned threads) {
    cpu::ThreadPool pool(threads);
    return scan_weights(file, pool, {});
}

/// A model on disk whose tensors may be replaced by others in memory.
struct Editable {
    ModelFile file;
    std::vector<std::unique_ptr<std::byte[]>> storage = {};

    explicit Editable(const std::string& path) : file(open_model_file(path, {})) {}

    TensorView& tensor(std::string_view name) {
        for (TensorView& t : file.tensors)
            if (t.name == name) return t;
        throw std::runtime_error("no tensor " + std::string(name));
    }
    std::byte* copy(TensorView& t, size_t size) {
        storage.push_back(std::make_unique<std::byte[]>(size));
        t.bytes = {storage.back().get(), size};
        return storage.back().get();
    }
    void encode(TensorView& t, const char* format, std::span<const float> values) {
        t.codec = codec_by_name(format);
        std::byte* out = copy(t, tensor_bytes(*t.codec, t.shape));
        encode_rows(*encoder_of(*t.codec), values.data(), t.shape.rows, t.shape.cols, out, nullptr,
                    t.name);
    }
};

std::vector<FormatError> compare(const ModelFile& a, const ModelFile& b, unsigned threads = 2) {
    cpu::ThreadPool pool(threads);
    return compare_weights(a, b, pool, {});
}

const std::string kTiny = data_path("models/tiny_qwen35_a"),
                  kMatrix = "model.layers.1.mlp.up_proj.weight";

}  // namespace

TEST_CASE("scan: a scale that is not finite damages its group and no other, for any threads") {
    const struct {
        const char* format;
        std::vector<size_t> scale_bytes;  // offsets in a row of 1024, each set to 0xFF 0x7F: NaN
        uint64_t damaged, groups;         // of a row
    } cases[] = {
        {"q8_0", {0, 34 * 5}, 2, 32},
        {"hfq4g256", {136 * 3 + 2}, 1, 4},  // upper half of the f32
                                            // scale
        {"mq4g256v2", {136 + 2}, 1, 4},     // the zero of half a group
        {"mq3g256lloyd", {}, 0, 4},
        {"bf16", {0, 2, 4}, 3, 1024},
        {"f32", {2}, 1, 1024},
    };
    const Shape shape{40, 1024};
    const auto weights = some_weights(shape.rows * shape.cols, /*seed=*/5);
    for (const auto& c : cases) {
        CAPTURE(c.format);
        OneTensor one(c.format, shape, weights);
        const size_t row_bytes = one.file.tensors[0].codec->row_bytes(shape.cols);
        for (const size_t row : {39, 17})
            for (const size_t at : c.scale_bytes) {
                one.bytes[row * row_bytes + at] = std::byte(0xFF);
                one.bytes[row * row_bytes + at + 1] = std::byte(0x7F);
            }
        for (const unsigned threads : {1u, 3u}) {
            const WeightScan found = scan(one.file, threads);
            CHECK(found.tensors == 1);
            CHECK(found.groups == shape.rows * c.groups);
            REQUIRE(found.damaged.size() == (c.damaged > 0));
            if (c.damaged == 0) continue;
            CHECK(found.damaged[0].damaged == 2 * c.damaged);
            CHECK(found.damaged[0].first_row == 17);
        }
    }
}

TEST_CASE("scan: a type without a decoder is skipped, and said so") {
    OneTensor one("f16", {3, 5}, some_weights(15, /*seed=*/6));
    one.file.tensors[0].codec = nullptr;
    CHECK(scan(one.file, 1).skipped == 1);
    CHECK(scan(one.file, 1).tensors == 0);
}

TEST_CASE("scan: the models of the tests hold finite weights only") {
    for (const std::string& path : {demo_model_path(), data_path("gguf/tiny_qwen35_b.q4_k_m.gguf")})
        CHECK(scan(open_model_file(path, {}), 2).damaged.empty());
}

TEST_CASE("compare: a model differs from itself by nothing, from twice a matrix by all of it") {
    Editable same(kTiny), twice(kTiny);
    for (const FormatError& e : compare(same.file, same.file)) CHECK(e.relative_error() == 0);

    TensorView& t = twice.tensor(kMatrix);
    std::vector<float> w = decode_flat(*t.codec, t.bytes.data(), t.shape.rows * t.shape.cols);
    for (float& x : w) x *= 2;
    twice.encode(t, "f32", w);
    const auto errors = compare(twice.file, same.file);
    REQUIRE(errors.size() == 2);
    const FormatError& e = *std::ranges::find(errors, codec_by_name("f32"), &FormatError::codec);
    CHECK(e.relative_error() == 1);
    CHECK(e.tensors == 1);
    CHECK(e.weights == w.size());
    CHECK(e.worst == kMatrix);
    CHECK(e.worst_error == 1);
}

TEST_CASE("compare: rotation and AWQ scales are taken out, for any threads to the same bits") {
    Editable original(kTiny), plain(kTiny), scaled(kTiny);
    TensorView& t = plain.tensor(kMatrix);
    std::vector<float> w = decode_flat(*t.codec, t.bytes.data(), t.shape.rows * t.shape.cols);
    plain.encode(t, "mq4g256v2", w);
    const auto error = [&](const ModelFile& file, unsigned threads) {
        for (const FormatError& e : compare(file, original.file, threads))
            if (e.codec == codec_by_name("mq4g256v2")) return e.relative_error();
        return std::numeric_limits<double>::quiet_NaN();
    };
    const double want = error(plain.file, 1);
    CHECK(want > 0.01);  // 4 bits lose something
    CHECK(want < 0.2);   // and would lose everything if they stayed rotated
    CHECK(error(plain.file, 3) == want);

    for (float& x : w) x *= 4;  // a power of two: the codes are the same
    scaled.encode(scaled.tensor(kMatrix), "mq4g256v2", w);
    TensorView scale;
    scale.name = "model.layers.1.mlp.up_proj.awq_scale.weight";
    scale.dims[0] = t.shape.cols;
    scale.n_dims = 1;
    scale.shape = {1, t.shape.cols};
    scaled.encode(scale, "f16", std::vector<float>(t.shape.cols, 4.0f));
    const auto at =
        std::ranges::lower_bound(scaled.file.tensors, scale.name, {}, &TensorView::name);
    scaled.file.tensors.insert(at, scale);
    CHECK(error(scaled.file, 2) == want);
}

TEST_CASE("compare: other models, and other conventions, are refused by name") {
    const ModelFile a = open_model_file(kTiny, {});
    CHECK_THROWS_WITH_AS(compare(a, open_model_file(data_path("models/tiny_qwen35_b"), {})),
                         doctest::Contains("not the same model"), Error);
    CHECK_THROWS_WITH_AS(compare(a, open_model_file(data_path("gguf/tiny_qwen35_a.q8_0.gguf"), {})),
                         doctest::Contains("conventions"), Error);
}
