#include "libcore/codec/decode.h"

#include <algorithm>

#include "cpuexec/fwht.h"

namespace hf {

void decode_original(const Codec& codec, const cpu::WeightView& W, size_t row,
                     std::span<float> out) {
    std::vector<float> padded(out.size() < W.cols ? W.cols : 0);
    float* values = padded.empty() ? out.data() : padded.data();
    codec.cpu.decode_row(W, row, values);
    if (codec.rotation != Rotation::none)
        cpu::unrotate(cpu::Level::scalar, rotation_block(codec.rotation), values, W.cols, values);
    if (!padded.empty()) std::copy_n(values, out.size(), out.data());
}

std::vector<float> decode_flat(const Codec& codec, const std::byte* bytes, uint64_t n) {
    const cpu::WeightView W = view_of(codec, bytes, {1, flat_cols(codec, n)});
    std::vector<float> values(W.cols);
    decode_original(codec, W, 0, values);
    values.resize(n);
    return values;
}

}  // namespace hf
