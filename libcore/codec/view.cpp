// Where the parts of a matrix's tensor lie.
#include "libcore/base/error.h"
#include "libcore/codec/codec.h"

namespace hf {

uint64_t sidecar_bytes(const Codec& codec, Shape shape) {
    if (codec.sidecar == Sidecar::codebook) return kCodebookBytes;
    if (codec.sidecar == Sidecar::scales)
        return shape.rows * (shape.cols / codec.group) * sizeof(uint16_t);
    return 0;
}

uint64_t tensor_bytes(const Codec& codec, Shape shape) {
    return shape.rows * codec.row_bytes(shape.cols) + sidecar_bytes(codec, shape);
}

cpu::WeightView view_of(const Codec& codec, const std::byte* tensor, Shape shape,
                        const std::byte* levels) {
    const uint64_t row_bytes = codec.row_bytes(shape.cols);
    const std::byte* rows = tensor + (codec.sidecar == Sidecar::codebook ? kCodebookBytes : 0);
    const std::byte* const sidecars[] = {nullptr, tensor, rows + shape.rows * row_bytes, levels};
    const std::byte* sidecar = sidecars[size_t(codec.sidecar)];
    HF_ASSERT(sidecar != nullptr || codec.sidecar == Sidecar::none);
    return {rows, shape.rows, activation_cols(codec, shape.cols), row_bytes, sidecar};
}

}  // namespace hf
