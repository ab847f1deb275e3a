// The table of weight formats. A new format is a row here and the functions that the row names.
#include "cpuexec/blocks.h"
#include "cpuexec/formats/formats.h"
#include "libcore/codec/codec.h"

namespace hf {
namespace {

/// Rows are whole groups without padding.
template <uint64_t group, uint64_t group_bytes>
uint64_t grouped(uint64_t cols) {
    return cols / group * group_bytes;
}

}  // namespace

std::span<const Codec> codecs() {
    // clang-format off
    static const Codec table[] = {
        // HFQ GGUF safetensors   name   group  bytes of a row                  x needs        AWQ    CPU         GPU
        {{  1,  1,  "F16"},      "f16",      1, grouped<1, 2>,                  Rotation::none, false, cpu::f16,  nullptr},
        {{  2,  0,  "F32"},      "f32",      1, grouped<1, 4>,                  Rotation::none, false, cpu::f32,  nullptr},
        {{  3,  8,  ""},         "q8_0",    32, grouped<32, sizeof(Q8_0Block)>, Rotation::none, false, cpu::q8_0, nullptr},
        {{ 16, 30,  "BF16"},     "bf16",     1, grouped<1, 2>,                  Rotation::none, false, cpu::bf16, nullptr},
    };
    // clang-format on
    return table;
}

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

}  // namespace hf
