// f32, f16, bf16.
#include "cpuexec/float16.h"
#include "libcore/quantize/encode.h"
#include "libcore/quantize/packing.h"

namespace hf::quantize {
namespace {

template <uint16_t (*convert)(float)>
void convert_all(const float* row, size_t cols, std::byte* out) {
    for (size_t i = 0; i < cols; ++i) {
        const uint16_t half = convert(row[i]);
        std::memcpy(out + i * sizeof(half), &half, sizeof(half));
    }
}

}  // namespace

void f32(const float* row, size_t cols, std::byte* out, std::byte*) {
    std::memcpy(out, row, cols * sizeof(float));
}
void f16(const float* row, size_t cols, std::byte* out, std::byte*) {
    convert_all<cpu::f32_to_f16_truncated>(row, cols, out);
}
void bf16(const float* row, size_t cols, std::byte* out, std::byte*) {
    convert_all<cpu::f32_to_bf16>(row, cols, out);
}

}  // namespace hf::quantize
