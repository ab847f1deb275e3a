// Formats against golden vectors, and the 16-bit floats against the CPU's own conversions.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <memory>

#include "cpuexec/float16.h"
#include "cpuexec/formats/formats.h"
#include "cpuexec/isa.h"
#include "cpuexec/simd.h"
#include "libcore/codec/codec.h"
#include "tests/support/data.h"

namespace hf {
namespace {

/// Bytes at an odd address that end exactly where the allocation ends.
struct OddBytes {
    explicit OddBytes(const std::string& from)
        : memory(static_cast<std::byte*>(std::malloc(from.size() + 1)), &std::free),
          begin(memory.get() + 1),
          size(from.size()) {
        std::memcpy(begin, from.data(), from.size());
    }
    std::unique_ptr<std::byte, void (*)(void*)> memory;
    std::byte* begin;
    size_t size;
};

uint32_t bits(float f) {
    return std::bit_cast<uint32_t>(f);
}

/// Where the golden rows of a format are: one set for each container that knows it. The GGUF set
/// has none for plain numbers, which the other set covers.
std::vector<std::string> golden_stems(const Codec& codec) {
    std::vector<std::string> stems;
    if (codec.ids.hfq >= 0)
        stems.push_back(fmt::format("codecs/qt{:02}_{}", codec.ids.hfq, codec.name));
    if (codec.ids.gguf >= 0 && codec.name != "f16" && codec.name != "f32")
        stems.push_back(fmt::format("gguf_codecs/{}", codec.name));
    return stems;
}

TEST_CASE("every format decodes its golden rows bit for bit, plainly and in AVX2") {
    constexpr size_t kRows = 4;
    for (const Codec& codec : codecs()) {
        for (const std::string& stem : golden_stems(codec)) {
            CAPTURE(stem);
            const std::string path = test::data_path(stem);
            const auto expected = test::read_values<float>(path + ".out.f32");
            const Shape shape{kRows, expected.size() / kRows};
            const OddBytes bytes(test::read_file(path + ".in.bin"));
            const OddBytes levels(codec.sidecar == Sidecar::levels
                                      ? test::read_file(path + ".lloyd_levels.f32")
                                      : "");
            REQUIRE(bytes.size == tensor_bytes(codec, shape));
            const cpu::WeightView W = view_of(codec, bytes.begin, shape, levels.begin);
            std::vector<float> row(shape.cols);
            for (size_t r = 0; r < kRows; ++r) {
                for (const cpu::Level level : {cpu::Level::scalar, cpu::Level::avx2}) {
                    if (!cpu::cpu_has(level)) continue;
                    cpu::pick_decode(codec.cpu, level)(W, r, row.data());
                    CHECK(std::memcmp(row.data(), &expected[r * shape.cols],
                                      shape.cols * sizeof(float)) == 0);
                }
            }
        }
    }
}

TEST_CASE("a format is found by its name and by its safetensors type") {
    for (const Codec& codec : codecs()) {
        CHECK(codec_by_name(codec.name) == &codec);
        if (!codec.ids.safetensors.empty())
            CHECK(codec_by_safetensors(codec.ids.safetensors) == &codec);
    }
    CHECK(codec_by_name("q9_9") == nullptr);
    CHECK(codec_by_name("") == nullptr);
    CHECK(codec_by_safetensors("F8_E4M3") == nullptr);
    CHECK(codec_by_safetensors("") == nullptr);
}

TEST_CASE("no two formats share a name or a container's id") {
    for (const Codec& a : codecs())
        for (const Codec& b : codecs()) {
            if (&a == &b) continue;
            CAPTURE(a.name);
            CAPTURE(b.name);
            CHECK(a.name != b.name);
            CHECK((a.ids.hfq == -1 || a.ids.hfq != b.ids.hfq));
            CHECK((a.ids.gguf == -1 || a.ids.gguf != b.ids.gguf));
            CHECK((a.ids.safetensors.empty() || a.ids.safetensors != b.ids.safetensors));
        }
}

TEST_CASE("q8_0 encodes the golden weights byte for byte") {
    const auto w = test::read_values<float>(test::data_path("codecs/encode.w.f32"));
    const std::string expected = test::read_file(test::data_path("codecs/qt03_q8_0.enc.bin"));
    REQUIRE(expected.size() == w.size() / 32 * 34);
    std::vector<std::byte> packed(expected.size());
    cpu::encode_q8_0(w.data(), w.size(), packed.data());
    CHECK(std::memcmp(packed.data(), expected.data(), expected.size()) == 0);
}

TEST_CASE("q8_0 does not hide infinities and NaNs, and encodes the smallest floats as zero") {
    for (float odd : {INFINITY, -INFINITY, NAN, 1e-45f, 1e-38f}) {
        CAPTURE(odd);
        std::vector<float> x(32, odd == odd && std::fabs(odd) < 1 ? 0.0f : 1.0f);
        x[17] = odd;
        std::vector<std::byte> packed(34);
        cpu::encode_q8_0(x.data(), x.size(), packed.data());
        codec_by_name("q8_0")->cpu.decode_row({packed.data(), 1, 32, 34, nullptr}, 0, x.data());
        if (std::isfinite(odd))
            CHECK(x[17] == 0.0f);
        else
            CHECK(std::isnan(x[17]));
    }
}

HF_AVX2 float f16_to_f32_by_cpu(uint16_t h) {
    return _cvtsh_ss(h);
}
HF_AVX2 uint16_t f32_to_f16_by_cpu(float f) {
    return _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/// Calls f with every f16 value, the midpoints between neighbours, and floats around both.
template <class F>
void for_floats_near_f16(F f) {
    for (uint32_t h = 0; h < 0x10000; ++h) {
        const uint32_t exact = bits(cpu::f16_to_f32(uint16_t(h)));
        for (uint32_t middle : {0u, 0x1000u})
            for (uint32_t step : {0u, 1u, ~0u}) f(std::bit_cast<float>(exact + middle + step));
    }
}

TEST_CASE("f16 conversions equal those of the CPU, both ways") {
    if (!cpu::cpu_has(cpu::Level::avx2)) return;
    size_t wrong = 0;
    for (uint32_t h = 0; h < 0x10000; ++h)
        wrong += bits(cpu::f16_to_f32(uint16_t(h))) != bits(f16_to_f32_by_cpu(uint16_t(h)));
    for_floats_near_f16([&](float f) { wrong += cpu::f32_to_f16(f) != f32_to_f16_by_cpu(f); });
    // One float in 509 of all 2^32, so every exponent, and every kind of rounding
    for (uint64_t b = 0; b < uint64_t(1) << 32; b += 509) {
        const float f = std::bit_cast<float>(uint32_t(b));
        wrong += cpu::f32_to_f16(f) != f32_to_f16_by_cpu(f);
    }
    CHECK(wrong == 0);
}

TEST_CASE("truncating to f16 gives the largest f16 that is not larger in magnitude") {
    size_t wrong = 0;
    for_floats_near_f16([&](float f) {
        const uint16_t h = cpu::f32_to_f16_truncated(f);
        if (std::isnan(f)) {
            wrong += !std::isnan(cpu::f16_to_f32(h));
        } else if (std::fabs(f) >= 65536) {
            wrong += cpu::f16_to_f32(h) != std::copysign(INFINITY, f);
        } else {
            const float below = std::fabs(cpu::f16_to_f32(h));
            const float above = h % 0x8000 == 0x7bff ? 65536 : std::fabs(cpu::f16_to_f32(h + 1));
            wrong += !(below <= std::fabs(f) && std::fabs(f) < above) ||
                     std::signbit(cpu::f16_to_f32(h)) != std::signbit(f);
        }
    });
    CHECK(wrong == 0);
}

TEST_CASE("rounding to bf16 gives the nearest, the even one of two") {
    for (uint32_t h = 0; h < 0x10000; ++h) {
        const float f = cpu::bf16_to_f32(uint16_t(h));
        if (std::isnan(f)) continue;
        REQUIRE(cpu::f32_to_bf16(f) == h);
        if ((h & 0x7fff) == 0x7f80) continue;  // infinity has no neighbour
        REQUIRE(cpu::f32_to_bf16(std::bit_cast<float>(bits(f) + 0x7fff)) == h);
        REQUIRE(cpu::f32_to_bf16(std::bit_cast<float>(bits(f) + 0x8000)) == h + h % 2);
        REQUIRE(cpu::f32_to_bf16(std::bit_cast<float>(bits(f) + 0x8001)) == h + 1);
    }
    CHECK(std::isnan(cpu::bf16_to_f32(cpu::f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace hf
