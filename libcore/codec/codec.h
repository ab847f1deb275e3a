// Codec: one weight format. A row of the table in registry.cpp; everything else reads the row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cpuexec/codec_ops.h"

namespace hf {

struct GpuOps;  // launchers of a format; empty without a GPU toolchain

/// How each container names a format. -1 or "": that container does not know it.
struct CodecIds {
    int16_t hfq;
    int16_t gguf;
    std::string_view safetensors;
};

/// What an activation must go through before it meets weights of a format.
enum class Rotation : uint8_t { none, fwht128, fwht256 };

/// Bytes of one row of `cols` weights; cols is a multiple of the group and below 2^31.
using RowBytes = uint64_t (*)(uint64_t cols);

struct Codec {
    CodecIds ids;
    std::string_view name;
    uint16_t group;  // weights per group; cols must be a multiple
    RowBytes row_bytes;
    Rotation rotation;
    bool takes_awq;
    cpu::CpuOps cpu;
    const GpuOps* gpu;
};

/// All formats, in the order of docs/formats.md.
std::span<const Codec> codecs();

/// The format that a container calls so; null if there is none.
const Codec* codec_by_name(std::string_view name);
const Codec* codec_by_safetensors(std::string_view dtype);

}  // namespace hf
