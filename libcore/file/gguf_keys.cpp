#include "libcore/file/gguf_keys.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "libcore/file/message.h"

namespace hf {
namespace {

template <class T>
T load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

/// A value as the widest type of its kind; nullopt when that does not hold it.
template <class T>
std::optional<int64_t> as_integer(const std::byte* at) {
    const T value = load<T>(at);
    if (std::cmp_greater(value, INT64_MAX)) return std::nullopt;
    return int64_t(value);
}
template <class T>
std::optional<double> as_number(const std::byte* at) {
    return double(load<T>(at));
}
template <class T>
std::string spelled(const std::byte* at) {
    return fmt::format("{}", load<T>(at));
}
std::string spelled_boolean(const std::byte* at) {
    return *at == std::byte(0) ? "false" : "true";
}
std::string spelled_string(const std::byte* at) {
    return shown(*GgufStrings::Iterator(at));
}

struct TypeRow {
    GgufType type;
    std::string_view name;
    uint8_t bytes;  // of a value; of a string: of its length
    std::optional<int64_t> (*integer)(const std::byte*);
    std::optional<double> (*number)(const std::byte*);
    std::string (*spell)(const std::byte*);
};

constexpr TypeRow kTypes[] = {
    {GgufType::u8, "u8", 1, as_integer<uint8_t>, as_number<uint8_t>, spelled<uint8_t>},
    {GgufType::i8, "i8", 1, as_integer<int8_t>, as_number<int8_t>, spelled<int8_t>},
    {GgufType::u16, "u16", 2, as_integer<uint16_t>, as_number<uint16_t>, spelled<uint16_t>},
    {GgufType::i16, "i16", 2, as_integer<int16_t>, as_number<int16_t>, spelled<int16_t>},
    {GgufType::u32, "u32", 4, as_integer<uint32_t>, as_number<uint32_t>, spelled<uint32_t>},
    {GgufType::i32, "i32", 4, as_integer<int32_t>, as_number<int32_t>, spelled<int32_t>},
    {GgufType::f32, "f32", 4, nullptr, as_number<float>, spelled<float>},
    {GgufType::boolean, "bool", 1, as_integer<uint8_t>, nullptr, spelled_boolean},
    {GgufType::string, "string", 8, nullptr, nullptr, spelled_string},
    {GgufType::u64, "u64", 8, as_integer<uint64_t>, as_number<uint64_t>, spelled<uint64_t>},
    {GgufType::i64, "i64", 8, as_integer<int64_t>, as_number<int64_t>, spelled<int64_t>},
    {GgufType::f64, "f64", 8, nullptr, as_number<double>, spelled<double>},
};

const TypeRow* find_row(uint32_t number) {
    for (const TypeRow& row : kTypes)
        if (uint32_t(row.type) == number) return &row;
    return nullptr;
}
const TypeRow& row_of(const GgufKey& key) {
    const TypeRow* row = find_row(uint32_t(key.type));
    HF_ASSERT(row != nullptr);
    return *row;
}

/// Element i of a key that holds no strings.
const std::byte* element(const GgufKey& key, uint64_t i) {
    return key.bytes.data() + i * row_of(key).bytes;
}

std::optional<int64_t> integer(const GgufKey& key, uint64_t i = 0) {
    const TypeRow& row = row_of(key);
    return row.integer ? row.integer(element(key, i)) : std::nullopt;
}

std::optional<double> number(const GgufKey& key, uint64_t i = 0) {
    const TypeRow& row = row_of(key);
    return row.number ? row.number(element(key, i)) : std::nullopt;
}

std::string spell(const GgufKey& key, uint64_t i = 0) {
    const TypeRow& row = row_of(key);
    return key.type == GgufType::string
               ? fmt::format("the string {}", row.spell(key.bytes.data()))
               : fmt::format("{} ({})", row.spell(element(key, i)), row.name);
}

}  // namespace

std::string_view name_of(GgufType type) {
    const TypeRow* row = find_row(uint32_t(type));
    HF_ASSERT(row != nullptr);
    return row->name;
}

std::optional<GgufType> gguf_type(uint32_t number) {
    const TypeRow* row = find_row(number);
    return row ? std::optional(row->type) : std::nullopt;
}

uint64_t bytes_of(GgufType type) {
    const TypeRow* row = find_row(uint32_t(type));
    HF_ASSERT(row != nullptr);
    return row->bytes;
}

std::string_view GgufStrings::Iterator::operator*() const {
    return {reinterpret_cast<const char*>(at_ + sizeof(uint64_t)), load<uint64_t>(at_)};
}
GgufStrings::Iterator& GgufStrings::Iterator::operator++() {
    at_ += sizeof(uint64_t) + load<uint64_t>(at_);
    return *this;
}
GgufStrings::Iterator GgufStrings::Iterator::operator++(int) {
    const Iterator before = *this;
    ++*this;
    return before;
}

GgufKeys::GgufKeys(std::string label, std::vector<GgufKey> keys,
                   std::shared_ptr<const void> storage)
    : label_(std::move(label)), keys_(std::move(keys)), storage_(std::move(storage)) {}

void GgufKeys::fail(std::string_view key, std::string_view what) const {
    fail_file(label_, "key {} {}", shown(key), what);
}

const GgufKey* GgufKeys::find(std::string_view key) const {
    const auto found = std::ranges::lower_bound(keys_, key, {}, &GgufKey::name);
    return found != keys_.end() && found->name == key ? &*found : nullptr;
}

/// The key, which must not be a list.
const GgufKey* GgufKeys::find_one(std::string_view key, bool required) const {
    const GgufKey* found = find(key);
    if (!found && required) fail(key, "is missing");
    if (found && found->is_list)
        fail(key, fmt::format("is a list of {} values, not a single one", found->count));
    return found;
}

/// The key, which must be a list.
const GgufKey* GgufKeys::find_list(std::string_view key) const {
    const GgufKey* found = find(key);
    if (found && !found->is_list)
        fail(key, fmt::format("is {}, not a list of values", spell(*found)));
    return found;
}

uint32_t GgufKeys::uint(std::string_view key, uint32_t least, uint32_t most,
                        std::optional<uint32_t> fallback) const {
    const GgufKey* found = find_one(key, !fallback);
    if (!found) return *fallback;
    return uint_at(*found, 0, least, most);
}

uint32_t GgufKeys::uint_at(const GgufKey& key, uint64_t i, uint32_t least, uint32_t most) const {
    const std::optional<int64_t> value = integer(key, i);
    if (!value || *value < least || *value > most)
        fail(key.name, fmt::format("{} {}; it must be a whole number from {} to {}",
                                   key.is_list ? fmt::format("has, as value {},", i) : "is",
                                   spell(key, i), least, most));
    return uint32_t(*value);
}

double GgufKeys::number(std::string_view key, double least, double most,
                        std::optional<double> fallback) const {
    const GgufKey* found = find_one(key, !fallback);
    if (!found) return *fallback;
    const std::optional<double> value = hf::number(*found);
    if (!value || !(*value >= least && *value <= most))
        fail(key,
             fmt::format("is {}; it must be a number from {} to {}", spell(*found), least, most));
    return *value;
}

std::string GgufKeys::text(std::string_view key, std::string_view fallback) const {
    const GgufKey* found = find_one(key, false);
    if (!found) return std::string(fallback);
    if (found->type != GgufType::string)
        fail(key, fmt::format("is {}, not a string", spell(*found)));
    return std::string(*GgufStrings(*found).begin());
}

bool GgufKeys::boolean(std::string_view key, bool fallback) const {
    const GgufKey* found = find_one(key, false);
    if (!found) return fallback;
    if (found->type != GgufType::boolean)
        fail(key, fmt::format("is {}; it must be true or false", spell(*found)));
    return *found->bytes.data() != std::byte(0);
}

std::vector<uint32_t> GgufKeys::uints(std::string_view key, size_t count, uint32_t least,
                                      uint32_t most, std::optional<uint32_t> fallback) const {
    const GgufKey* found = find(key);
    if (!found || !found->is_list) return std::vector(count, uint(key, least, most, fallback));
    if (found->count != count)
        fail(key, fmt::format("is a list of {} values; it must be one value or {}", found->count,
                              count));
    std::vector<uint32_t> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = uint_at(*found, i, least, most);
    return values;
}

GgufStrings GgufKeys::strings(std::string_view key) const {
    const GgufKey* found = find_list(key);
    if (!found || found->count == 0) return {};
    if (found->type != GgufType::string)
        fail(key, fmt::format("is a list of {}, not of strings", name_of(found->type)));
    return GgufStrings(*found);
}

std::vector<float> GgufKeys::floats(std::string_view key) const {
    const GgufKey* found = find_list(key);
    std::vector<float> values(found ? found->count : 0);
    if (!values.empty() && !row_of(*found).number)
        fail(key, fmt::format("is a list of {}, not of numbers", name_of(found->type)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = float(*hf::number(*found, i));
    return values;
}

std::vector<int32_t> GgufKeys::ints(std::string_view key) const {
    const GgufKey* found = find_list(key);
    std::vector<int32_t> values(found ? found->count : 0);
    if (!values.empty() && !row_of(*found).integer)
        fail(key, fmt::format("is a list of {}, not of whole numbers", name_of(found->type)));
    for (size_t i = 0; i < values.size(); ++i) {
        const std::optional<int64_t> value = integer(*found, i);
        if (!value || !std::in_range<int32_t>(*value))
            fail(key,
                 fmt::format("has, as value {}, {}; it must be below 2^31", i, spell(*found, i)));
        values[i] = int32_t(*value);
    }
    return values;
}

}  // namespace hf
