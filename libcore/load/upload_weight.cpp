#include "libcore/load/upload_weight.h"

#include "libcore/base/error.h"
#include "libcore/codec/decode.h"

namespace hf {
namespace {

Buffer copy(Device& device, std::span<const std::byte> bytes, Residency residency) {
    Buffer buffer = device.allocate(bytes.size(), residency);
    device.upload(buffer, 0, bytes);
    return buffer;
}

void count(LoadStats& stats, const Buffer& buffer) {
    const size_t residency = size_t(buffer.residency());
    stats.bytes[residency] += buffer.bytes();
    stats.tensors[residency] += 1;
    if (buffer.in_place()) stats.in_place[residency] += buffer.bytes();
}

Buffer upload_matrix(Device& device, LoadStats& stats, std::span<const std::byte> mapped,
                     Residency residency) {
    auto in_place = device.adopt(mapped, residency);
    Buffer buffer = in_place ? std::move(*in_place) : copy(device, mapped, residency);
    count(stats, buffer);
    return buffer;
}

Mirrored upload_values(Device& device, LoadStats& stats, std::span<const float> values,
                       bool is_mirrored) {
    Mirrored v{copy(device, std::as_bytes(values), Residency::device), {}};
    count(stats, v.buffer);
    if (is_mirrored) {
        v.mirror = copy(device, std::as_bytes(values), Residency::host_plain);
        stats.mirrored_bytes += v.mirror.bytes();
    }
    return v;
}

Mirrored upload_sidecar(Device& device, LoadStats& stats, const TensorView& t, bool is_mirrored) {
    return upload_values(device, stats, decode_flat(*t.codec, t.bytes.data(), t.dims[0]),
                         is_mirrored);
}

}  // namespace

void upload_weight(Device& device, LoadStats& stats, const PlannedWeight& planned,
                   std::span<const float> values) {
    Weight& w = *planned.weight;
    const PlannedTensor& source = planned.source;
    if (source.row->use == Use::vector) {
        w.data = upload_values(device, stats, values, w.is_mirrored);
        return;
    }
    HF_ASSERT(source.tensor->bytes.size() == w.bytes());
    w.data.buffer = upload_matrix(device, stats, source.tensor->bytes, w.residency);
    if (source.levels) w.levels = upload_sidecar(device, stats, *source.levels, w.is_mirrored);
    if (source.awq_scale)
        w.awq_scale = upload_sidecar(device, stats, *source.awq_scale, w.is_mirrored);
}

}  // namespace hf
