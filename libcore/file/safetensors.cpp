#include "libcore/file/safetensors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "libcore/base/checked.h"
#include "libcore/file/json.h"
#include "libcore/file/message.h"

namespace hf {
namespace {

constexpr size_t kLengthBytes = 8;  // of the number in front of the header
constexpr uint64_t kPadding = 8;    // padding ends at a multiple of this and is shorter
constexpr uint64_t kSideLimit = uint64_t(1) << 31;  // of rows and of columns

struct Dtype {
    std::string_view name;
    uint8_t bytes;
};

constexpr Dtype kDtypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
    {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
    {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8},
};

/// What the header says of one tensor. Offsets count from the start of the data.
struct Entry {
    std::string name;
    const Dtype* dtype = nullptr;
    std::array<uint64_t, 4> dims{};
    uint8_t n_dims = 0;
    Shape shape;
    uint64_t begin = 0, end = 0;
};

/// The two parts of a file.
struct Parts {
    std::string_view header;
    std::span<const std::byte> data;
};

Parts split(std::span<const std::byte> bytes, const std::string& path) {
    constexpr std::string_view kLfs = "version https://git-lfs";
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.starts_with(kLfs))
        fail_file(path, "is a Git LFS pointer and not the weights; fetch them with 'git lfs pull'");
    if (bytes.size() < kLengthBytes)
        fail_file(path,
                  "the file has {} bytes, but the length of its header alone takes {}: {} bytes "
                  "are missing; fetch it again",
                  bytes.size(), kLengthBytes, kLengthBytes - bytes.size());

    uint64_t length;
    std::memcpy(&length, bytes.data(), kLengthBytes);
    const uint64_t left = bytes.size() - kLengthBytes;
    if (length == 0)
        fail_file(path, "the length of the header is 0; no safetensors file, or damaged");
    if (length > kMostHeaderBytes)
        fail_file(path,
                  "the header claims {} bytes, at most {} are allowed; no safetensors file, or "
                  "damaged",
                  length, kMostHeaderBytes);
    if (length > left)
        fail_file(path,
                  "the header takes {} bytes, but the file has {} after its length: {} bytes are "
                  "missing; fetch it again",
                  length, left, length - left);

    const Parts parts{text.substr(kLengthBytes, length), bytes.subspan(kLengthBytes + length)};
    if (parts.header[0] != '{') fail_file(path, "the header is not a JSON object; damaged");
    return parts;
}

/// Reads one entry of the header, `name`, and checks what can be checked without the others.
class EntryReader {
  public:
    EntryReader(JsonReader& json, const std::string& path, const std::string& name)
        : json_(json), path_(path), name_(name) {}

    Entry read() {
        if (json_.peek() != JsonReader::Kind::object) fail("its entry is not a JSON object");
        json_.object([this](const std::string& key) { read_member(key); });
        for (size_t i = 0; i < std::size(kKeys); ++i)
            if (!seen_[i]) fail("its entry has no '{}'", kKeys[i]);
        check_shape();
        check_bytes();
        entry_.name = name_;
        return std::move(entry_);
    }

  private:
    static constexpr std::string_view kKeys[] = {"dtype", "shape", "data_offsets"};

    template <class... Args>
    [[noreturn]] void fail(fmt::format_string<Args...> what, Args&&... args) {
        fail_file(path_, "tensor {}: {}", shown(name_),
                  fmt::format(what, std::forward<Args>(args)...));
    }

    void read_member(const std::string& key) {
        const size_t i = std::find(std::begin(kKeys), std::end(kKeys), key) - std::begin(kKeys);
        if (i == std::size(kKeys)) return json_.skip();
        if (seen_[i]) fail("'{}' is there twice", key);
        seen_[i] = true;
        if (key == "dtype") read_dtype();
        if (key == "shape") entry_.n_dims = uint8_t(read_numbers(key, entry_.dims));
        if (key == "data_offsets") read_offsets(key);
    }

    void read_dtype() {
        if (json_.peek() != JsonReader::Kind::string) fail("'dtype' is not a string");
        const std::string dtype = json_.string();
        for (const Dtype& known : kDtypes)
            if (known.name == dtype) entry_.dtype = &known;
        if (!entry_.dtype) fail("the dtype {} is unknown; convert it to BF16", shown(dtype));
    }

    void read_offsets(const std::string& key) {
        std::array<uint64_t, 2> offsets{};
        if (const size_t count = read_numbers(key, offsets); count != 2)
            fail("'data_offsets' has {} numbers instead of 2", count);
        entry_.begin = offsets[0];
        entry_.end = offsets[1];
    }

    /// Reads an array into the front of `out` and returns how many numbers there were.
    size_t read_numbers(const std::string& key, std::span<uint64_t> out) {
        if (json_.peek() != JsonReader::Kind::array) fail("'{}' is not an array", key);
        size_t count = 0;
        json_.array([&] {
            if (count == out.size()) fail("'{}' has more than {} numbers", key, out.size());
            out[count++] = read_number(key);
        });
        return count;
    }

    /// Numbers stay below 2^63, so that adding a header's length to one cannot overflow.
    uint64_t read_number(const std::string& key) {
        if (json_.peek() != JsonReader::Kind::number)
            fail("'{}' holds something that is not a number", key);
        const std::string_view spelled = json_.number();
        const char* end = spelled.data() + spelled.size();
        int64_t value = -1;
        const auto [stop, error] = std::from_chars(spelled.data(), end, value);
        if (error != std::errc() || stop != end || value < 0)
            fail("'{}' holds {}, which is not a whole number from 0 to 2^63 - 1", key,
                 shown(spelled));
        return uint64_t(value);
    }

    std::string dims_text() const {
        return fmt::format("[{}]",
                           fmt::join(entry_.dims.data(), entry_.dims.data() + entry_.n_dims, ", "));
    }

    void check_shape() {
        uint64_t rows = 1, cols = 1;  // their product fits, at any time
        for (const uint64_t dim : std::span(entry_.dims).first(entry_.n_dims)) {
            if (!checked_mul(rows * cols, dim))
                fail("the product of its shape {} overflows", dims_text());
            rows *= cols;
            cols = dim;
        }
        if (rows >= kSideLimit || cols >= kSideLimit)
            fail("its shape {} makes {} rows and {} columns; each must be below {}", dims_text(),
                 rows, cols, kSideLimit);
        entry_.shape = {rows, cols};
    }

    void check_bytes() {
        if (entry_.begin > entry_.end)
            fail("it begins at {} and ends before, at {}; damaged", entry_.begin, entry_.end);
        // rows and columns are below 2^31, so their product fits; times 8 it need not
        const std::optional<uint64_t> need =
            checked_mul(entry_.shape.rows * entry_.shape.cols, entry_.dtype->bytes);
        if (!need || *need != entry_.end - entry_.begin)
            fail("its offsets span {} bytes, but shape {} of {} needs {}; damaged",
                 entry_.end - entry_.begin, dims_text(), entry_.dtype->name,
                 need ? fmt::to_string(*need) : "more than 2^64");
    }

    JsonReader& json_;
    const std::string& path_;
    const std::string& name_;
    Entry entry_;
    bool seen_[std::size(kKeys)] = {};
};

void read_metadata(JsonReader& json, const std::string& path) {
    if (json.peek() != JsonReader::Kind::object)
        fail_file(path, "'__metadata__' is not a JSON object");
    json.object([&](const std::string& key) {
        if (json.peek() != JsonReader::Kind::string)
            fail_file(path, "'__metadata__' has {}, which is not a string", shown(key));
        json.skip();
    });
}

std::vector<Entry> read_entries(std::string_view header, const std::string& path) {
    std::vector<Entry> entries;
    const std::string where = path + ": the header is damaged";
    JsonReader json(header, where);
    json.object([&](const std::string& name) {
        if (name == "__metadata__") return read_metadata(json, path);
        if (entries.size() == kMostTensors)
            fail_file(path, "has more than {} tensors", kMostTensors);
        entries.push_back(EntryReader(json, path, name).read());
    });
    json.end();
    return entries;
}

/// Sorts by name; refuses a name that is there twice.
void check_names(std::vector<Entry>& entries, const std::string& path) {
    std::ranges::sort(entries, {}, &Entry::name);
    const auto twice = std::ranges::adjacent_find(entries, {}, &Entry::name);
    if (twice != entries.end())
        fail_file(path, "tensor {} is there twice; damaged", shown(twice->name));
}

/// Sorts by place; refuses overlaps, gaps, and data that ends too early or too late.
void check_layout(std::vector<Entry>& entries, uint64_t data_bytes, const std::string& path) {
    std::ranges::sort(entries, {}, [](const Entry& e) { return std::pair(e.begin, e.end); });
    const Entry* last = nullptr;
    uint64_t covered = 0;
    for (const Entry& e : entries) {
        if (e.begin < covered)
            fail_file(path,
                      "tensor {} begins at {}, but {} before it ends at {}: they overlap; damaged",
                      shown(e.name), e.begin, shown(last->name), covered);
        const uint64_t gap = e.begin - covered;
        if (gap >= kPadding || (gap > 0 && e.begin % kPadding != 0))
            fail_file(path,
                      "{} bytes in front of tensor {}, which begins at {}, belong to no tensor; "
                      "damaged",
                      gap, shown(e.name), e.begin);
        covered = e.end;
        last = &e;
    }
    if (covered > data_bytes)
        fail_file(path,
                  "tensor {} ends at {} of the data, but the file has {} bytes of it: {} bytes "
                  "are missing; fetch it again",
                  shown(last->name), covered, data_bytes, covered - data_bytes);
    if (covered < data_bytes)
        fail_file(path,
                  "the last tensor ends at {} of the data, but the file has {} bytes of it: the "
                  "last {} belong to no tensor; damaged",
                  covered, data_bytes, data_bytes - covered);
}

}  // namespace

std::vector<TensorView> read_safetensors(std::span<const std::byte> bytes, const std::string& path,
                                         uint32_t file) {
    const Parts parts = split(bytes, path);
    std::vector<Entry> entries = read_entries(parts.header, path);
    check_names(entries, path);
    check_layout(entries, parts.data.size(), path);

    const uint64_t data_offset = bytes.size() - parts.data.size();
    std::vector<TensorView> tensors;
    tensors.reserve(entries.size());
    for (Entry& e : entries)
        tensors.push_back({.name = std::move(e.name),
                           .dtype = std::string(e.dtype->name),
                           .codec = codec_by_safetensors(e.dtype->name),
                           .dims = e.dims,
                           .n_dims = e.n_dims,
                           .shape = e.shape,
                           .bytes = parts.data.subspan(e.begin, e.end - e.begin),
                           .file = file,
                           .offset = data_offset + e.begin});
    std::ranges::sort(tensors, {}, &TensorView::name);
    return tensors;
}

}  // namespace hf
