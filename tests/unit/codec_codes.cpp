// Small facts of the formats: bit streams, 8-bit scales, and names of types that are refused.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "cpuexec/formats/codes.h"
#include "cpuexec/formats/float8.h"
#include "libcore/codec/codec.h"

namespace hf {
namespace {

template <unsigned width>
void check_codes(const std::vector<uint8_t>& bytes, const std::vector<uint32_t>& expected) {
    for (size_t i = 0; i < expected.size(); ++i)
        CHECK(cpu::code<width>(bytes.data(), i) == expected[i]);
}

TEST_CASE("codes are a little-endian bit stream") {
    check_codes<1>({0x45, 0x81}, {1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1});
    check_codes<2>({0x1b}, {3, 2, 1, 0});
    check_codes<3>({0x01, 0x23, 0x45}, {1, 0, 4, 1, 2, 2, 1, 2});
    check_codes<4>({0x21, 0x43}, {1, 2, 3, 4});
    check_codes<5>({0x01, 0x23, 0x45, 0x67, 0x89}, {1, 24, 8, 10, 20, 19, 5, 17});
    check_codes<6>({0x01, 0x23, 0x45}, {1, 12, 18, 17});
}

TEST_CASE("UE8M0 is a power of two, from a subnormal one to infinity") {
    for (int code = 0; code < 255; ++code)
        CHECK(cpu::ue8m0_to_f32(uint8_t(code)) == std::ldexp(1.0f, code - 127));
    CHECK(std::isinf(cpu::ue8m0_to_f32(255)));
}

TEST_CASE(
    "E4M3 has subnormals, no sign, and a highest code of which each container has its own view") {
    for (int code = 0; code < 256; ++code) {
        const int exponent = code >> 3 & 15, mantissa = code & 7;
        const float expected = exponent ? std::ldexp(1 + float(mantissa) / 8, exponent - 7)
                                        : std::ldexp(float(mantissa), -9);
        const bool highest = (code & 127) == 127;
        CHECK(cpu::e4m3_hfq(uint8_t(code)) == (highest ? 448 : expected));
        CHECK(cpu::e4m3_gguf(uint8_t(code)) == (code == 127 ? 0 : expected));
    }
}

TEST_CASE("an id is a format, or refused by name, or unknown") {
    for (uint32_t id = 0; id <= 60; ++id) {
        CAPTURE(id);
        CHECK(!(codec_by_hfq(id) && refused_hfq(id)));
        CHECK((codec_by_hfq(id) || refused_hfq(id)) == (id <= 53));
        CHECK(!(codec_by_gguf(id) && refused_gguf(id)));
        CHECK((codec_by_gguf(id) || refused_gguf(id)) == (id <= 42));
    }
    for (uint32_t id : {256u, 65535u, 0xffffffffu}) {  // ids are not cut to 8 or 16 bits
        CHECK(!codec_by_hfq(id));
        CHECK(!refused_hfq(id));
        CHECK(!codec_by_gguf(id));
    }
    CHECK(refused_gguf(19)->name == "IQ1_S");
    CHECK(refused_gguf(32)->why.find("removed") != std::string_view::npos);
    CHECK(refused_gguf(139)->name.find("ik_llama") != std::string_view::npos);
    CHECK(refused_hfq(42)->name.find("ESCHA2T16") != std::string_view::npos);
    for (const Codec& codec : codecs()) {
        if (codec.ids.hfq >= 0) CHECK(codec_by_hfq(uint32_t(codec.ids.hfq)) == &codec);
        if (codec.ids.gguf >= 0) CHECK(codec_by_gguf(uint32_t(codec.ids.gguf)) == &codec);
    }
}

}  // namespace
}  // namespace hf
