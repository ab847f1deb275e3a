// What every fuzz target does with tensors that a reader has let through.
#pragma once

#include <cstdint>
#include <span>

#include "libcore/base/error.h"
#include "libcore/file/model_file.h"

namespace hf::fuzz {

/// Reads the first and the last byte of each tensor.
inline void touch(std::span<const TensorView> tensors) {
    volatile unsigned sum = 0;
    for (const TensorView& t : tensors) {
        if (t.bytes.empty()) continue;
        sum = sum + unsigned(t.bytes.front()) + unsigned(t.bytes.back());
        if (t.codec) HF_ASSERT(tensor_bytes(*t.codec, t.shape) == t.bytes.size());
    }
}

/// Reads every byte of every key.
inline void touch(const GgufKeys& keys) {
    volatile unsigned sum = 0;
    for (const GgufKey& key : keys.all()) {
        for (const std::byte b : key.bytes) sum = sum + unsigned(b);
        if (key.type != GgufType::string) continue;
        uint64_t count = 0;
        for (const std::string_view s : GgufStrings(key)) {
            ++count;
            if (!s.empty()) sum = sum + unsigned(s.back());
        }
        HF_ASSERT(count == key.count);
    }
}

}  // namespace hf::fuzz
