// Codec: one weight format. A row of the table in registry.cpp; everything else reads the row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cpuexec/codec_ops.h"
#include "libcore/base/shape.h"

namespace hf {

struct GpuOps;  // launchers of a format; empty without a GPU toolchain

/// How each container names a format. -1 or "": that container does not know it.
struct CodecIds {
    int16_t hfq;
    int16_t gguf;
    std::string_view safetensors;
};

/// What an activation must go through before it meets weights of a format (cpuexec/fwht.h).
enum class Rotation : uint8_t { none, fwht128, fwht256 };

/// Values of a block that is rotated as a whole; 1 without a rotation.
constexpr uint64_t rotation_block(Rotation rotation) {
    return rotation == Rotation::none ? 1 : rotation == Rotation::fwht128 ? 128 : 256;
}

/// What a format keeps once per matrix, beside its rows. The CPU functions find it in
/// WeightView::sidecar.
enum class Sidecar : uint8_t {
    none,
    codebook,  // 16 f16, in front of the rows
    scales,    // one f16 per group, row by row, behind the rows
    levels,    // 16 float32, in a tensor of their own: "<stem>.lloyd_levels.weight"
};
inline constexpr uint64_t kCodebookBytes = 32, kLloydLevels = 16;

/// Bytes of one row of `cols` weights; cols is a multiple of cols_unit() and below 2^31.
using RowBytes = uint64_t (*)(uint64_t cols);

struct Codec {
    CodecIds ids;
    std::string_view name;
    uint16_t group;  // weights that share a scale or a block
    RowBytes row_bytes;
    Rotation rotation;
    bool takes_awq;
    cpu::CpuOps cpu;
    const GpuOps* gpu;
    Sidecar sidecar = Sidecar::none;
    bool pads_rows = false;  // a row may end inside its last group; the rest of that is padding
};

/// All formats, in the order of docs/formats.md.
std::span<const Codec> codecs();

/// The format that a container calls so; null if there is none.
const Codec* codec_by_name(std::string_view name);
const Codec* codec_by_safetensors(std::string_view dtype);
const Codec* codec_by_hfq(uint32_t id);
const Codec* codec_by_gguf(uint32_t id);

/// A type that a container may name and that is no format of this build.
struct RefusedType {
    uint32_t first, last;  // ids
    std::string_view name;
    std::string_view why;  // goes on after "type NAME "
};

/// What is known of an id that has no codec; null if nothing is.
const RefusedType* refused_hfq(uint32_t id);
const RefusedType* refused_gguf(uint32_t id);

/// What the columns of a matrix must be a multiple of: its groups and its rotation are whole.
constexpr uint64_t cols_unit(const Codec& codec) {
    const uint64_t block = rotation_block(codec.rotation);
    return codec.pads_rows ? 1 : codec.group > block ? codec.group : block;
}

/// Activations that a row is multiplied with. Only where padded rows are rotated these are more
/// than cols: zeros are added before the rotation, and nothing after it is zero.
constexpr uint64_t activation_cols(const Codec& codec, uint64_t cols) {
    const uint64_t block = codec.pads_rows ? rotation_block(codec.rotation) : 1;
    return (cols + block - 1) / block * block;
}

/// Bytes of a sidecar that lies in the matrix's own tensor.
uint64_t sidecar_bytes(const Codec& codec, Shape shape);

/// Bytes of a matrix's tensor: rows and sidecar. rows and cols are below 2^31, and cols is a
/// multiple of cols_unit().
uint64_t tensor_bytes(const Codec& codec, Shape shape);

/// A matrix's tensor as the CPU functions see it.
///
/// tensor  tensor_bytes(), any alignment, owned by somebody else
/// levels  kLloydLevels float32 where the codec's sidecar is `levels`, else ignored
/// Returns a view whose cols are activation_cols()
cpu::WeightView view_of(const Codec& codec, const std::byte* tensor, Shape shape,
                        const std::byte* levels = nullptr);

}  // namespace hf
