// GGUF files for tests: valid ones, and ones in which any field lies.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hf::test {

template <class T>
void put(std::string& out, T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out.append(bytes, sizeof value);
}

/// A key and the bytes behind its name's type.
struct GgufKeyParts {
    std::string name;
    uint32_t type;
    std::string value;
};

struct GgufTensorParts {
    std::string name;
    std::vector<uint64_t> dims;  // fastest first
    uint32_t type;
    std::string data;
    std::optional<uint64_t> offset = {};  // empty: behind the tensor before, aligned
};

struct GgufParts {
    std::string magic = "GGUF";
    uint32_t version = 3;
    std::vector<GgufKeyParts> keys;
    std::vector<GgufTensorParts> tensors;
    uint64_t alignment = 32;  // is not written; a key says it
    std::optional<uint64_t> n_keys = {}, n_tensors = {};

    /// Ends with the last tensor's data, without padding.
    std::string bytes() const {
        std::string out = magic, data;
        put(out, version);
        put(out, n_tensors.value_or(tensors.size()));
        put(out, n_keys.value_or(keys.size()));
        for (const GgufKeyParts& key : keys) {
            put_string(out, key.name);
            put(out, key.type);
            out += key.value;
        }
        for (const GgufTensorParts& t : tensors) {
            pad(data);
            put_string(out, t.name);
            put(out, uint32_t(t.dims.size()));
            for (const uint64_t dim : t.dims) put(out, dim);
            put(out, t.type);
            put(out, t.offset.value_or(data.size()));
            data += t.data;
        }
        if (!data.empty()) pad(out);
        return out + data;
    }

    static void put_string(std::string& out, std::string_view text) {
        put(out, uint64_t(text.size()));
        out += text;
    }

  private:
    void pad(std::string& out) const {
        out.resize((out.size() + alignment - 1) / alignment * alignment);
    }
};

inline constexpr uint32_t kGgufString = 8, kGgufList = 9;

template <class T>
constexpr uint32_t gguf_type_number() {
    if constexpr (std::is_same_v<T, uint8_t>) return 0;
    if constexpr (std::is_same_v<T, int8_t>) return 1;
    if constexpr (std::is_same_v<T, uint16_t>) return 2;
    if constexpr (std::is_same_v<T, int16_t>) return 3;
    if constexpr (std::is_same_v<T, uint32_t>) return 4;
    if constexpr (std::is_same_v<T, int32_t>) return 5;
    if constexpr (std::is_same_v<T, float>) return 6;
    if constexpr (std::is_same_v<T, bool>) return 7;
    if constexpr (std::is_same_v<T, uint64_t>) return 10;
    if constexpr (std::is_same_v<T, int64_t>) return 11;
    if constexpr (std::is_same_v<T, double>) return 12;
}

template <class T>
GgufKeyParts gguf_key(const std::string& name, T value) {
    GgufKeyParts key{name, gguf_type_number<T>(), {}};
    put(key.value, value);
    return key;
}
inline GgufKeyParts gguf_key(const std::string& name, const std::string& text) {
    GgufKeyParts key{name, kGgufString, {}};
    GgufParts::put_string(key.value, text);
    return key;
}
inline GgufKeyParts gguf_key(const std::string& name, const char* text) {
    return gguf_key(name, std::string(text));
}

/// `count`: what the list claims to hold, if not the truth.
template <class T>
GgufKeyParts gguf_list(const std::string& name, const std::vector<T>& values,
                       std::optional<uint64_t> count = std::nullopt) {
    GgufKeyParts key{name, kGgufList, {}};
    put(key.value, gguf_type_number<T>());
    put(key.value, count.value_or(values.size()));
    for (const T value : values) put(key.value, value);
    return key;
}
inline GgufKeyParts gguf_list(const std::string& name, const std::vector<std::string>& values,
                              std::optional<uint64_t> count = std::nullopt) {
    GgufKeyParts key{name, kGgufList, {}};
    put(key.value, kGgufString);
    put(key.value, count.value_or(values.size()));
    for (const std::string& value : values) GgufParts::put_string(key.value, value);
    return key;
}

}  // namespace hf::test
