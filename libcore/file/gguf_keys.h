// GgufKeys: the metadata of a GGUF file, read in place: a typed value or a list of them per key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hf {

/// Types of values, as files number them. Lists are no type here: see GgufKey::is_list.
enum class GgufType : uint32_t {
    u8 = 0,
    i8 = 1,
    u16 = 2,
    i16 = 3,
    u32 = 4,
    i32 = 5,
    f32 = 6,
    boolean = 7,
    string = 8,
    u64 = 10,
    i64 = 11,
    f64 = 12,
};

/// The type of that number; lists and unknown ones have none.
std::optional<GgufType> gguf_type(uint32_t number);
std::string_view name_of(GgufType type);  // "u8", "string", ...
/// Bytes of a value; of a string: of the length in front of it.
uint64_t bytes_of(GgufType type);

/// One key and its value. The bytes belong to a mapped file and were checked to be whole values.
struct GgufKey {
    std::string_view name;
    GgufType type;  // of the value, or of each element
    bool is_list = false;
    uint64_t count = 1;  // of elements
    std::span<const std::byte>
        bytes;  // little-endian, any alignment; a string follows its u64 length
};

/// The strings of a list, one after another: for (std::string_view s : keys.strings("...")).
/// Nothing is copied; there is no way to the middle of it.
class GgufStrings {
  public:
    class Iterator {
      public:
        using value_type = std::string_view;
        using difference_type = std::ptrdiff_t;

        Iterator() = default;
        explicit Iterator(const std::byte* at) : at_(at) {}
        std::string_view operator*() const;
        Iterator& operator++();
        Iterator operator++(int);
        bool operator==(const Iterator&) const = default;

      private:
        const std::byte* at_ = nullptr;
    };

    GgufStrings() = default;
    explicit GgufStrings(const GgufKey& key) : bytes_(key.bytes), count_(key.count) {}
    Iterator begin() const { return Iterator(bytes_.data()); }
    Iterator end() const { return Iterator(bytes_.data() + bytes_.size()); }
    uint64_t size() const { return count_; }

  private:
    std::span<const std::byte> bytes_;
    uint64_t count_ = 0;
};

/// All keys of a model; empty for a model without any. Copies share what they point into.
///
/// Integers are taken from any integer type that holds the value, since writers differ; bool counts
/// as one of 0 and 1. A key is spelled in full ("qwen35.block_count").
/// Errors  hf::Error naming file, key, the value found and what is accepted: a key without fallback
///         that is missing, another type, a list where one value is meant, a value out of bounds
class GgufKeys {
  public:
    GgufKeys() = default;
    /// label    begins the error messages: the file
    /// keys     sorted by name, no name twice
    /// storage  what the views point into, when that is not a mapped file; may be null
    GgufKeys(std::string label, std::vector<GgufKey> keys,
             std::shared_ptr<const void> storage = nullptr);

    bool empty() const { return keys_.empty(); }
    std::span<const GgufKey> all() const { return keys_; }
    const GgufKey* find(std::string_view key) const;  // null: there is none
    bool has(std::string_view key) const { return find(key) != nullptr; }

    /// A whole number in [least, most].
    uint32_t uint(std::string_view key, uint32_t least, uint32_t most,
                  std::optional<uint32_t> fallback = std::nullopt) const;
    /// A finite number in [least, most], of any number type.
    double number(std::string_view key, double least, double most,
                  std::optional<double> fallback = std::nullopt) const;
    std::string text(std::string_view key, std::string_view fallback) const;
    bool boolean(std::string_view key, bool fallback) const;

    /// `count` whole numbers in [least, most]: one value that stands for all of them, or a list of
    /// exactly so many. Absent: the fallback, `count` times.
    std::vector<uint32_t> uints(std::string_view key, size_t count, uint32_t least, uint32_t most,
                                std::optional<uint32_t> fallback = std::nullopt) const;

    /// The elements of a list; absent: none. floats takes any number type, ints any integer type
    /// whose values fit.
    GgufStrings strings(std::string_view key) const;
    std::vector<float> floats(std::string_view key) const;
    std::vector<int32_t> ints(std::string_view key) const;

    /// hf::Error about a key of this file.
    [[noreturn]] void fail(std::string_view key, std::string_view what) const;

  private:
    const GgufKey* find_one(std::string_view key, bool required) const;
    const GgufKey* find_list(std::string_view key) const;
    uint32_t uint_at(const GgufKey& key, uint64_t i, uint32_t least, uint32_t most) const;

    std::string label_;
    std::vector<GgufKey> keys_;
    std::shared_ptr<const void> storage_;
};

}  // namespace hf
