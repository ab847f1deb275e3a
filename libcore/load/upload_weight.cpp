#include "libcore/load/upload_weight.h"

#include "libcore/base/error.h"

namespace hf {
namespace {

Buffer copy_to_device(Device& device, std::span<const std::byte> bytes) {
    Buffer buffer = device.allocate(bytes.size(), Residency::device);
    device.upload(buffer, 0, bytes);
    return buffer;
}

std::unique_ptr<Weight> record(LoadStats& stats, std::string name, const Codec& codec, Shape shape,
                               Buffer buffer) {
    HF_ASSERT(buffer.bytes() == tensor_bytes(codec, shape));
    const size_t residency = size_t(buffer.residency());
    stats.bytes[residency] += buffer.bytes();
    stats.tensors[residency] += 1;
    if (buffer.in_place()) stats.in_place_bytes += buffer.bytes();
    auto weight = std::make_unique<Weight>();
    weight->name = std::move(name);
    weight->codec = &codec;
    weight->shape = shape;
    weight->buffer = std::move(buffer);
    return weight;
}

}  // namespace

std::unique_ptr<Weight> upload_weight(Device& device, LoadStats& stats, std::string name,
                                      const Codec& codec, Shape shape,
                                      std::span<const std::byte> bytes) {
    auto in_place = device.adopt(bytes);
    return record(stats, std::move(name), codec, shape,
                  in_place ? std::move(*in_place) : copy_to_device(device, bytes));
}

std::unique_ptr<Weight> upload_vector(Device& device, LoadStats& stats, std::string name,
                                      Shape shape, std::span<const float> values) {
    return record(stats, std::move(name), *codec_by_name("f32"), shape,
                  copy_to_device(device, std::as_bytes(values)));
}

}  // namespace hf
