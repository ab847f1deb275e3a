// The table of weight formats. A new format is a row here and the functions that the row names.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/formats.h"
#include "libcore/codec/codec.h"

namespace hf {
namespace {

// Bytes of a row. ------------------------------------------------------------------------------

/// Whole blocks without padding; the last one may be cut where the codec pads rows.
template <uint64_t weights, uint64_t block_bytes>
uint64_t blocks(uint64_t cols) {
    return (cols + weights - 1) / weights * block_bytes;
}
template <class Block, uint64_t weights>
uint64_t of(uint64_t cols) {
    return blocks<weights, sizeof(Block)>(cols);
}

/// A header, then blocks of 32.
template <unsigned width>
uint64_t fp4_row(uint64_t cols) {
    return sizeof(Fp4RowHeader) + cols / 32 * sizeof(Fp4Block<width>);
}

constexpr uint64_t round_up(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}
uint64_t e8_soa_row(uint64_t cols) {
    return sizeof(Fp4RowHeader) + round_up(cols / 32, 16) + cols / 2;
}
uint64_t q8hfq_row(uint64_t cols) {
    return round_up(cols / 32 * 2 + cols, 128);
}

constexpr Rotation none = Rotation::none, r256 = Rotation::fwht256, r128 = Rotation::fwht128;

}  // namespace

std::span<const Codec> codecs() {
    // clang-format off
    static const Codec table[] = {
        //HFQ GGUF safetensors  name         group  bytes of a row             rotation AWQ  CPU            GPU      sidecar, padded rows
        {{  2,   0, "F32" }, "f32",             1, blocks<1, 4>,                  none, false, cpu::f32,               nullptr},
        {{  1,   1, "F16" }, "f16",             1, blocks<1, 2>,                  none, false, cpu::f16,               nullptr},
        {{ 16,  30, "BF16"}, "bf16",            1, blocks<1, 2>,                  none, false, cpu::bf16,              nullptr},
        {{  3,   8, ""    }, "q8_0",           32, of<Q8_0Block, 32>,             none, false, cpu::q8_0,              nullptr},
        // HFQ: affine, one f32 pair
        {{  6,  -1, ""    }, "hfq4g256",      256, of<AffineBlock<4, 256>, 256>,  none, false, cpu::affine4_g256,      nullptr},
        {{  7,  -1, ""    }, "hfq4g128",      128, of<AffineBlock<4, 128>, 128>,  none, false, cpu::affine4_g128,      nullptr, Sidecar::none, true},
        {{  8,  -1, ""    }, "hfq6g256",      256, of<AffineBlock<6, 256>, 256>,  none, false, cpu::affine6_g256,      nullptr},
        {{  9,  -1, ""    }, "hfq2g256",      256, of<AffineBlock<2, 256>, 256>,  none, false, cpu::affine2_g256,      nullptr},
        {{ 10,  -1, ""    }, "hfq2g128",      128, of<AffineBlock<2, 128>, 128>,  none, false, cpu::affine2_g128,      nullptr},
        {{ 11,  -1, ""    }, "hfq3g256",      256, of<AffineBlock<3, 256>, 256>,  none, false, cpu::affine3_g256,      nullptr},
        {{ 12,  -1, ""    }, "hfq3g128",      128, of<AffineBlock<3, 128>, 128>,  none, false, cpu::affine3_g128,      nullptr},
        {{ 13,  -1, ""    }, "mq4g256",       256, of<AffineBlock<4, 256>, 256>,  r256, true,  cpu::affine4_g256,      nullptr},
        {{ 15,  -1, ""    }, "mq6g256",       256, of<AffineBlock<6, 256>, 256>,  r256, false, cpu::affine6_g256,      nullptr},
        {{ 17,  -1, ""    }, "mq3g256",       256, of<AffineBlock<3, 256>, 256>,  r256, true,  cpu::affine3_g256,      nullptr},
        {{ 18,  -1, ""    }, "mq2g256",       256, of<AffineBlock<2, 256>, 256>,  r256, true,  cpu::affine2_g256,      nullptr},
        {{ 31,  -1, ""    }, "mq5g256",       256, of<AffineBlock<5, 256>, 256>,  r256, false, cpu::affine5_g256,      nullptr},
        // HFQ: affine, f16 pairs
        {{ 44,  -1, ""    }, "mq4g256v2",     256, of<AffineV2Block<4>, 256>,     r256, true,  cpu::affine4_v2,        nullptr},
        {{ 45,  -1, ""    }, "mq4cg256",      256, of<Mq4cBlock, 256>,            r256, true,  cpu::mq4c,              nullptr},
        {{ 47,  -1, ""    }, "mq6g256v2",     256, of<AffineV2Block<6>, 256>,     r256, true,  cpu::affine6_v2,        nullptr},
        {{ 48,  -1, ""    }, "mq5g256v2",     256, of<AffineV2Block<5>, 256>,     r256, true,  cpu::affine5_v2,        nullptr},
        {{ 49,  -1, ""    }, "mq3g256v2",     256, of<AffineV2Block<3>, 256>,     r256, true,  cpu::affine3_v2,        nullptr},
        {{ 50,  -1, ""    }, "mq2g256v2",     256, of<AffineV2Block<2>, 256>,     r256, true,  cpu::affine2_v2,        nullptr},
        {{ 52,  -1, ""    }, "mq4g256v2l",    256, of<AffineV2Block<4>, 256>,     r256, true,  cpu::affine4_v2_levels, nullptr, Sidecar::levels},
        {{ 53,  -1, ""    }, "mq4g128v2",     128, of<Mq4g128V2Block, 128>,       r128, false, cpu::mq4_g128_v2,       nullptr, Sidecar::none, true},
        {{  0,  -1, ""    }, "q4f16g64",       64, of<Q4F16Block, 64>,            none, false, cpu::q4_f16_g64,        nullptr},
        // HFQ: codebooks
        {{ 19,  -1, ""    }, "mq2g256lloyd",  256, of<LloydBlock<2>, 256>,        r256, true,  cpu::lloyd2,            nullptr},
        {{ 20,  -1, ""    }, "mq3g256lloyd",  256, of<LloydBlock<3>, 256>,        r256, true,  cpu::lloyd3,            nullptr},
        {{ 30,  -1, ""    }, "mq4g256lloyd",  256, of<LloydBlock<4>, 256>,        r256, false, cpu::lloyd4,            nullptr},
        {{ 51,  -1, ""    }, "mq2g256lloydu", 256, of<LloydBlock<2>, 256>,        none, false, cpu::lloyd2,            nullptr},
        {{ 38,  -1, ""    }, "mq2g256gl",     256, of<GlBlock<2>, 256>,           r256, false, cpu::gl2,               nullptr, Sidecar::scales},
        {{ 39,  -1, ""    }, "mq3g256gl",     256, of<GlBlock<3>, 256>,           r256, false, cpu::gl3,               nullptr, Sidecar::scales},
        // HFQ: a scale alone
        {{  5,  -1, ""    }, "q8hfq",          32, q8hfq_row,                     none, false, cpu::q8hfq,             nullptr},
        {{ 14,  -1, ""    }, "mq8g256",       256, of<Mq8Block, 256>,             r256, false, cpu::mq8,               nullptr},
        {{ 40,  -1, ""    }, "tq2g128",       128, of<TernaryBlock<2>, 128>,      none, false, cpu::ternary,           nullptr},
        {{ 41,  -1, ""    }, "bq1g128",       128, of<TernaryBlock<1>, 128>,      none, false, cpu::binary,            nullptr},
        // HFQ: 4-bit floats and E8 points in rows with a header
        {{ 21,  -1, ""    }, "hfp4g32",        32, fp4_row<4>,                    none, false, cpu::fp4_ue8m0,         nullptr},
        {{ 24,  -1, ""    }, "mfp4g32",        32, fp4_row<4>,                    r256, false, cpu::fp4_ue8m0,         nullptr},
        {{ 32,  -1, ""    }, "mfp4g32lloyd",   32, fp4_row<4>,                    r256, false, cpu::fp4_lloyd,         nullptr, Sidecar::codebook},
        {{ 33,  -1, ""    }, "mfp4g32p",       32, fp4_row<4>,                    r256, false, cpu::fp4_e4m3,          nullptr},
        {{ 34,  -1, ""    }, "mfp4g32e8",      32, fp4_row<4>,                    r256, false, cpu::e8_4,              nullptr},
        {{ 35,  -1, ""    }, "mfp4g32e8soa",   32, e8_soa_row,                    r256, false, cpu::e8_4_soa,          nullptr},
        {{ 36,  -1, ""    }, "mfp3g32e8",      32, fp4_row<3>,                    r256, false, cpu::e8_3,              nullptr},
        {{ 37,  -1, ""    }, "mfp2g32e8",      32, fp4_row<2>,                    r256, false, cpu::e8_2,              nullptr},
        // GGUF
        {{ -1,   2, ""    }, "q4_0",           32, of<Q4_0Block, 32>,             none, false, cpu::q4_0,              nullptr},
        {{ -1,   3, ""    }, "q4_1",           32, of<Q4_1Block, 32>,             none, false, cpu::q4_1,              nullptr},
        {{ -1,   6, ""    }, "q5_0",           32, of<Q5_0Block, 32>,             none, false, cpu::q5_0,              nullptr},
        {{ -1,   7, ""    }, "q5_1",           32, of<Q5_1Block, 32>,             none, false, cpu::q5_1,              nullptr},
        {{ -1,  10, ""    }, "q2_k",          256, of<Q2KBlock, 256>,             none, false, cpu::q2_k,              nullptr},
        {{ -1,  11, ""    }, "q3_k",          256, of<Q3KBlock, 256>,             none, false, cpu::q3_k,              nullptr},
        {{  4,  12, ""    }, "q4_k",          256, of<Q4KBlock, 256>,             none, false, cpu::q4_k,              nullptr},
        {{ -1,  13, ""    }, "q5_k",          256, of<Q5KBlock, 256>,             none, false, cpu::q5_k,              nullptr},
        {{ -1,  14, ""    }, "q6_k",          256, of<Q6KBlock, 256>,             none, false, cpu::q6_k,              nullptr},
        {{ -1,  20, ""    }, "iq4_nl",         32, of<Q4_0Block, 32>,             none, false, cpu::iq4_nl,            nullptr},
        {{ -1,  23, ""    }, "iq4_xs",        256, of<Iq4XsBlock, 256>,           none, false, cpu::iq4_xs,            nullptr},
        {{ -1,  39, ""    }, "mxfp4",          32, of<Mxfp4Block, 32>,            none, false, cpu::mxfp4,             nullptr},
        {{ -1,  40, ""    }, "nvfp4",          64, of<Nvfp4Block, 64>,            none, false, cpu::nvfp4,             nullptr},
    };
    // clang-format on
    return table;
}

namespace {

// clang-format off
constexpr RefusedType kRefusedHfq[] = {
    {22, 22, "TidI32",              "is a routing table, not a weight"},
    {23, 23, "reserved",            "was never written by a released converter"},
    {25, 27, "reserved",            "was never written by a released converter"},
    {28, 28, "PARO4G128",           "needs a rotation that this build does not have"},
    {29, 29, "PARO4G128T",          "needs a rotation that this build does not have"},
    {42, 42, "ESCHA2T16 or MFP4G32E8G128", "has two meanings, and the file does not tell which"},
    {43, 43, "ESCHA3T16",           "needs transforms that this build does not have"},
    {46, 46, "mq4_k",               "is reserved and was never written"},
};

constexpr std::string_view kRequantize = "was removed from GGUF (a repacked type); requantize";
constexpr std::string_view kGrid = "needs a codebook that this build does not have; requantize";
constexpr std::string_view kActivations = "holds activations and never lies in files";
constexpr std::string_view kNumbers = "holds numbers that are no weights";
constexpr RefusedType kRefusedGguf[] = {
    { 4,  4, "Q4_2",    "was removed from GGUF; requantize"},
    { 5,  5, "Q4_3",    "was removed from GGUF; requantize"},
    { 9,  9, "Q8_1",    kActivations},
    {15, 15, "Q8_K",    kActivations},
    {16, 16, "IQ2_XXS", kGrid},
    {17, 17, "IQ2_XS",  kGrid},
    {18, 18, "IQ3_XXS", kGrid},
    {19, 19, "IQ1_S",   kGrid},
    {21, 21, "IQ3_S",   kGrid},
    {22, 22, "IQ2_S",   kGrid},
    {24, 24, "I8",      kNumbers},
    {25, 25, "I16",     kNumbers},
    {26, 26, "I32",     kNumbers},
    {27, 27, "I64",     kNumbers},
    {28, 28, "F64",     kNumbers},
    {29, 29, "IQ1_M",   kGrid},
    {31, 33, "Q4_0_4_4, Q4_0_4_8 or Q4_0_8_8",    kRequantize},
    {34, 34, "TQ1_0",   "has no decoder in this build; requantize"},
    {35, 35, "TQ2_0",   "has no decoder in this build; requantize"},
    {36, 38, "IQ4_NL_4_4, IQ4_NL_4_8 or IQ4_NL_8_8", kRequantize},
    {41, 41, "Q1_0",    "has no decoder in this build; requantize"},
    {42, 42, "Q2_0",    "has no decoder in this build; requantize"},
    {97, 399, "of ik_llama.cpp", "is not part of GGUF as ggml defines it; requantize"},
};
// clang-format on

const RefusedType* find_refused(std::span<const RefusedType> types, uint32_t id) {
    for (const RefusedType& type : types)
        if (type.first <= id && id <= type.last) return &type;
    return nullptr;
}

}  // namespace

const Codec* codec_by_name(std::string_view name) {
    for (const Codec& codec : codecs())
        if (codec.name == name) return &codec;
    return nullptr;
}

const Codec* codec_by_safetensors(std::string_view dtype) {
    for (const Codec& codec : codecs())
        if (!dtype.empty() && codec.ids.safetensors == dtype) return &codec;
    return nullptr;
}

const Codec* codec_by_hfq(uint32_t id) {
    for (const Codec& codec : codecs())
        if (codec.ids.hfq >= 0 && uint32_t(codec.ids.hfq) == id) return &codec;
    return nullptr;
}

const Codec* codec_by_gguf(uint32_t id) {
    for (const Codec& codec : codecs())
        if (codec.ids.gguf >= 0 && uint32_t(codec.ids.gguf) == id) return &codec;
    return nullptr;
}

const RefusedType* refused_hfq(uint32_t id) {
    return find_refused(kRefusedHfq, id);
}

const RefusedType* refused_gguf(uint32_t id) {
    return find_refused(kRefusedGguf, id);
}

}  // namespace hf
