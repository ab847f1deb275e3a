#include "libcore/model/state.h"

#include <fmt/format.h>

#include <cstring>

#include "cpuexec/float16.h"
#include "cpuexec/formats/formats.h"
#include "libcore/base/checked.h"
#include "libcore/base/error.h"

namespace hf {
namespace {

/// Hands out regions of a slab, each aligned to 64 bytes.
struct Allocator {
    uint64_t used = 0;

    uint64_t take(uint64_t count, uint64_t bytes_each) {
        const auto bytes = checked_mul(count, bytes_each);
        const auto end = bytes ? checked_add(used, *bytes) : std::nullopt;
        if (!end || *end > (uint64_t(1) << 62))
            throw Error(
                fmt::format("the state of {} x {} bytes does not fit 64 bits; "
                            "lower memory.max_seq",
                            count, bytes_each));
        const uint64_t at = used;
        used = (*end + 63) / 64 * 64;
        return at;
    }
    uint64_t take_floats(uint64_t a, uint64_t b) { return take(a, b * sizeof(float)); }
};

void encode_f32(const float* row, size_t n, std::byte* out) {
    std::memcpy(out, row, n * sizeof(float));
}

void encode_f16(const float* row, size_t n, std::byte* out) {
    for (size_t i = 0; i < n; ++i) {
        const uint16_t h = cpu::f32_to_f16(row[i]);
        std::memcpy(out + i * sizeof(h), &h, sizeof(h));
    }
}

}  // namespace

std::span<const KvType> kv_types() {
    static const KvType types[] = {
        {"f16", codec_by_name("f16"), encode_f16},
        {"f32", codec_by_name("f32"), encode_f32},
        {"q8", codec_by_name("q8_0"), cpu::encode_q8_0},
    };
    return types;
}

const KvType* kv_type_by_name(std::string_view name) {
    for (const KvType& type : kv_types())
        if (type.name == name) return &type;
    return nullptr;
}

StateLayout lay_out_state(const StateSpec& spec, const KvType& kv, uint32_t max_seq,
                          uint32_t max_pending) {
    if (spec.kv_layers && spec.head_dim % kv.codec->group != 0)
        throw Error(fmt::format("memory.kv_cache = {} stores {} values at a time, but the model's "
                                "head_dim is {}; choose f16 or f32",
                                kv.name, kv.codec->group, spec.head_dim),
                    Fault::refused);
    StateLayout layout;
    layout.spec = spec;
    layout.kv = &kv;
    layout.kv_head_bytes = kv.codec->row_bytes(spec.head_dim);
    layout.kv_row_bytes = spec.kv_heads * layout.kv_head_bytes;
    layout.max_seq = max_seq;
    layout.max_pending = max_pending;

    Allocator slab;
    layout.delta_layers.resize(spec.delta_layers);
    for (DeltaLayer& l : layout.delta_layers) {
        l.s = slab.take_floats(uint64_t(spec.value_heads) * spec.key_dim, spec.value_dim);
        l.conv = slab.take_floats(spec.conv_kernel - 1, spec.channels());
    }
    layout.recurrent_bytes = slab.used;
    for (DeltaLayer& l : layout.delta_layers) {
        l.pending_m = slab.take_floats(max_pending, spec.channels());
        l.pending_k = slab.take_floats(max_pending, uint64_t(spec.key_heads) * spec.key_dim);
        l.pending_d = slab.take_floats(max_pending, uint64_t(spec.value_heads) * spec.value_dim);
        l.pending_g = slab.take_floats(max_pending, spec.value_heads);
    }
    for (uint32_t i = 0; i < spec.kv_layers; ++i) {
        const uint64_t k = slab.take(max_seq, layout.kv_row_bytes);
        layout.kv_layers.push_back({k, slab.take(max_seq, layout.kv_row_bytes)});
    }
    layout.bytes = slab.used;
    return layout;
}

}  // namespace hf
