// The table of encoders, and the one way into it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpuexec/fwht.h"
#include "libcore/base/error.h"
#include "libcore/quantize/encode.h"
#include "libcore/quantize/encoder.h"

namespace hf {
namespace {

namespace q = quantize;

struct Row {
    std::string_view name;
    EncodeRow encode_row;
    bool takes_any = false;
    bool (*fits)(const float*, size_t) = nullptr;
    std::string_view fitting = {};
};

constexpr Row kRows[] = {
    {"f32", q::f32, true},
    {"f16", q::f16},
    {"bf16", q::bf16, true},
    {"q8_0", q::q8_0},
    {"hfq4g256", q::affine<4, 256>},
    {"hfq4g128", q::affine<4, 128>},
    {"hfq6g256", q::affine<6, 256>},
    {"hfq2g256", q::affine<2, 256>},
    {"hfq2g128", q::affine<2, 128>},
    {"hfq3g256", q::affine<3, 256>},
    {"hfq3g128", q::affine<3, 128>},
    {"mq4g256", q::affine<4, 256>},
    {"mq6g256", q::affine<6, 256>},
    {"mq3g256", q::affine<3, 256>},
    {"mq2g256", q::affine<2, 256>},
    {"mq5g256", q::affine<5, 256>},
    {"mq4g256v2", q::affine_v2<4>},
    {"mq4cg256", q::mq4c},
    {"mq6g256v2", q::affine_v2<6>},
    {"mq5g256v2", q::affine_v2<5>},
    {"mq3g256v2", q::affine_v2<3>},
    {"mq2g256v2", q::affine_v2<2>},
    {"mq4g128v2", q::mq4_g128_v2},
    {"q4f16g64", q::q4_f16},
    {"mq2g256lloyd", q::lloyd<2>},
    {"mq3g256lloyd", q::lloyd<3>},
    {"mq4g256lloyd", q::lloyd<4>},
    {"mq2g256lloydu", q::three_levels, false, q::has_three_levels,
     "at most three different values in 256, each exact in f16"},
    {"mq2g256gl", q::gl<2>},
    {"mq3g256gl", q::gl<3>},
    {"q8hfq", q::q8hfq},
    {"mq8g256", q::mq8},
    {"tq2g128", q::ternary},
    {"bq1g128", q::binary},
    {"hfp4g32", q::hfp4},
    {"mfp4g32", q::mfp4},
    {"mfp4g32p", q::mfp4p},
    {"mfp4g32e8", q::e8<4>},
    {"mfp4g32e8soa", q::e8_soa},
    {"mfp3g32e8", q::e8<3>},
    {"mfp2g32e8", q::e8<2>},
};

std::vector<Encoder> make_table() {
    std::vector<Encoder> table;
    for (const Row& row : kRows)
        table.push_back(
            {codec_by_name(row.name), row.encode_row, row.takes_any, row.fits, row.fitting});
    return table;
}

/// Rotated, or as it is; what is added to fill the last group is zero.
void prepare_row(const Codec& codec, const float* row, size_t cols, std::vector<float>& prepared) {
    std::copy_n(row, cols, prepared.data());
    std::fill(prepared.begin() + std::ptrdiff_t(cols), prepared.end(), 0.0f);
    if (codec.rotation != Rotation::none)
        cpu::rotate(cpu::Level::scalar, rotation_block(codec.rotation), prepared.data(),
                    prepared.size(), prepared.data());
}

void check_row(const Encoder& encoder, const std::vector<float>& row, std::string_view where,
               uint64_t number) {
    constexpr float kLargest = 65504;  // of f16
    const Codec& codec = *encoder.codec;
    const auto odd =
        std::ranges::find_if_not(row, [](float v) { return std::fabs(v) <= kLargest; });
    if (!encoder.takes_any && odd != row.end())
        throw Error(fmt::format(
            "{}: row {} has the value {}{}, but format {} holds numbers up to {}; "
            "f32 and bf16 hold all",
            where, number, *odd, codec.rotation == Rotation::none ? "" : " when it is rotated",
            codec.name, kLargest));
    if (encoder.fits && !encoder.fits(row.data(), row.size()))
        throw Error(
            fmt::format("{}: row {} does not fit format {}, which holds {}; choose another "
                        "format",
                        where, number, codec.name, encoder.fitting));
}

}  // namespace

std::span<const Encoder> encoders() {
    static const std::vector<Encoder> table = make_table();
    return table;
}

const Encoder* encoder_of(const Codec& codec) {
    for (const Encoder& encoder : encoders())
        if (encoder.codec == &codec) return &encoder;
    return nullptr;
}

void encode_rows(const Encoder& encoder, const float* rows, size_t count, size_t cols,
                 std::byte* out, std::byte* scales, std::string_view where, uint64_t first_row) {
    const Codec& codec = *encoder.codec;
    HF_ASSERT(cols % cols_unit(codec) == 0);
    std::vector<float> row((cols + codec.group - 1) / codec.group * codec.group);
    const size_t row_bytes = codec.row_bytes(cols);
    for (size_t r = 0; r < count; ++r) {
        prepare_row(codec, rows + r * cols, cols, row);
        check_row(encoder, row, where, first_row + r);
        std::byte* row_scales =
            codec.sidecar == Sidecar::scales ? scales + r * (cols / codec.group) * 2 : nullptr;
        encoder.encode_row(row.data(), row.size(), out + r * row_bytes, row_scales);
    }
}

}  // namespace hf
