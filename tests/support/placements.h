// What tests of placements share: the small models, and a card of any size.
#pragma once

#include <memory>

#include "libcore/device/open_device.h"
#include "libcore/file/model_file.h"
#include "tests/support/data.h"

namespace hf::test {

/// Of every architecture, and one in a format with scales of its own for runs.
inline constexpr const char* kPlacedModels[] = {
    "models/tiny_qwen35_a", "models/tiny_qwen35_b", "models/tiny_qwen3",
    "models/tiny_qwen2",    "models/tiny_llama",    "gguf/tiny_qwen35_b.q4_k_m.gguf",
};

inline std::shared_ptr<const ModelFile> open_shared(const char* name) {
    return std::make_shared<ModelFile>(open_model_file(data_path(name), {}));
}

/// One thread plays a card of so many bytes.
inline DeviceOptions card(uint64_t bytes) {
    DeviceOptions options;
    options.threads = 1;
    options.vram_bytes = bytes;
    return options;
}

}  // namespace hf::test
