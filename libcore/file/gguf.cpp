#include "libcore/file/gguf.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "libcore/base/checked.h"
#include "libcore/file/byte_reader.h"
#include "libcore/file/message.h"
#include "libcore/file/tensor_checks.h"

namespace hf {
namespace {

constexpr uint32_t kListType = 9;
constexpr uint64_t kLeastKeyBytes = 14;     // a name and a value of one byte each
constexpr uint64_t kLeastTensorBytes = 33;  // a name of one byte, one dimension
constexpr uint64_t kMostKeyName = 65535, kMostTensorName = 64;

/// A type of tensors: how many elements make a block, and its bytes. Those without a codec can be
/// listed, not computed with.
struct TensorType {
    uint32_t id;
    std::string_view name;
    uint16_t elements, bytes;
};

constexpr TensorType kTensorTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},
};

const TensorType* find_type(uint32_t id) {
    for (const TensorType& type : kTensorTypes)
        if (type.id == id) return &type;
    return nullptr;
}

class Reader {
  public:
    Reader(std::span<const std::byte> bytes, const std::string& path, uint32_t file)
        : bytes_(bytes),
          path_(path),
          file_(file),
          in_(bytes, path, {"the file ends", "fetch it again"}) {}

    GgufContents read() {
        read_start();
        for (uint64_t i = 0; i < n_keys_; ++i) contents_.keys.push_back(read_key());
        sort_keys();
        const uint64_t alignment = read_alignment();
        check_vocabulary();
        for (uint64_t i = 0; i < n_tensors_; ++i) read_tensor(alignment);
        place_tensors(alignment);
        sort_by_name(path_, contents_.tensors);
        return std::move(contents_);
    }

  private:
    template <class... Args>
    [[noreturn]] void fail(fmt::format_string<Args...> what, Args&&... args) const {
        fail_file(path_, what, std::forward<Args>(args)...);
    }

    void read_start() {
        const std::string_view magic = in_.text(4, "the magic");
        if (magic != "GGUF") fail("starts with {} instead of 'GGUF'; no GGUF file", shown(magic));
        const uint32_t version = in_.number<uint32_t>("the version");
        if (version != 0 && (version & 0xFFFF) == 0)
            fail(
                "the version is {:#x}: a big-endian file, which this build does not read; convert "
                "the model again",
                version);
        if (version == 1) fail("is of version 1, whose lengths differ; convert the model again");
        if (version != 2 && version != 3)
            fail("is of version {}; this build reads 2 and 3", version);
        n_tensors_ = in_.number<uint64_t>("the number of tensors");
        n_keys_ = in_.number<uint64_t>("the number of keys");
        check_count("tensors", n_tensors_, kLeastTensorBytes, kMostTensors);
        check_count("keys", n_keys_, kLeastKeyBytes, kMostGgufKeys);
    }

    void check_count(std::string_view what, uint64_t count, uint64_t least_bytes,
                     uint64_t most) const {
        if (count > most) fail("claims {} {}; at most {} are allowed; damaged", count, what, most);
        if (count * least_bytes > in_.left())
            fail(
                "claims {} {}, which take {} bytes at least, but the file has {} left at byte {}: "
                "{} bytes are missing; fetch it again",
                count, what, count * least_bytes, in_.left(), in_.at(),
                count * least_bytes - in_.left());
    }

    std::string_view read_string(std::string_view what) {
        return in_.text(in_.number<uint64_t>(what), what);
    }

    // --- keys

    GgufKey read_key() {
        const uint64_t begin = in_.at();
        GgufKey key{};
        key.name = read_string("the name of a key");
        if (key.name.empty() || key.name.size() > kMostKeyName)
            fail("the key at byte {} has a name of {} bytes; it must be 1 to {}; damaged", begin,
                 key.name.size(), kMostKeyName);
        const std::string what = "the value of key " + shown(key.name);
        uint32_t number = in_.number<uint32_t>(what);
        key.is_list = number == kListType;
        if (key.is_list) {
            number = in_.number<uint32_t>(what);
            if (number == kListType)
                fail("key {} is a list of lists, which is not read", shown(key.name));
            key.count = in_.number<uint64_t>(what);
        }
        const std::optional<GgufType> type = gguf_type(number);
        if (!type) fail("key {} has the unknown type {}; damaged", shown(key.name), number);
        key.type = *type;
        key.bytes = read_values(key, what);
        return key;
    }

    std::span<const std::byte> read_values(const GgufKey& key, const std::string& what) {
        const auto bytes = checked_mul(key.count, bytes_of(key.type));  // of strings: the lengths
        if (!bytes) fail("{} claims {} elements; damaged", what, key.count);
        if (key.type == GgufType::string) return read_strings(key.count, *bytes, what);
        const std::span<const std::byte> values = in_.take(*bytes, what);
        if (key.type == GgufType::boolean)
            for (const std::byte b : values)
                if (b > std::byte(1))
                    fail("key {} has the boolean {}; it must be 0 or 1; damaged", shown(key.name),
                         int(b));
        return values;
    }

    std::span<const std::byte> read_strings(uint64_t count, uint64_t least_bytes,
                                            const std::string& what) {
        if (least_bytes > in_.left()) in_.take(least_bytes, what);  // fails
        const uint64_t begin = in_.at();
        for (uint64_t i = 0; i < count; ++i) read_string(what);
        return bytes_.subspan(begin, in_.at() - begin);
    }

    void sort_keys() {
        std::ranges::sort(contents_.keys, {}, &GgufKey::name);
        const auto twice = std::ranges::adjacent_find(contents_.keys, {}, &GgufKey::name);
        if (twice != contents_.keys.end())
            fail("key {} is there twice; damaged", shown(twice->name));
        keys_ = GgufKeys(path_, contents_.keys);
    }

    uint64_t read_alignment() const {
        constexpr std::string_view kKey = "general.alignment";
        const GgufKey* key = keys_.find(kKey);
        if (!key) return 32;
        if (key->type != GgufType::u32)
            keys_.fail(kKey, fmt::format("is of type {}; it must be u32", name_of(key->type)));
        const uint32_t alignment = keys_.uint(kKey, 1, UINT32_MAX);
        if ((alignment & (alignment - 1)) != 0)
            keys_.fail(kKey, fmt::format("is {}; it must be a power of two", alignment));
        return alignment;
    }

    /// The vocabulary's lists belong together, and special tokens are in it.
    void check_vocabulary() const {
        const std::string prefix = "tokenizer.ggml.";
        const GgufStrings tokens = keys_.strings(prefix + "tokens");
        if (tokens.size() == 0) return;
        for (const char* name : {"scores", "token_type"})
            if (const GgufKey* key = keys_.find(prefix + name))
                if (!key->is_list || key->count != tokens.size())
                    keys_.fail(key->name, fmt::format("has {} values, but there are {} tokens",
                                                      key->count, tokens.size()));
        const uint32_t last = uint32_t(std::min<uint64_t>(tokens.size(), UINT32_MAX) - 1);
        for (const GgufKey& key : keys_.all())
            if (key.name.starts_with(prefix) && key.name.ends_with("_token_id"))
                keys_.uint(key.name, 0, last);
    }

    // --- tensors

    /// Reads what the header says of a tensor; `bytes` cannot be set before the header has ended.
    void read_tensor(uint64_t alignment) {
        const uint64_t begin = in_.at();
        const std::string place = fmt::format("the tensor at byte {}", begin);
        TensorView t;
        const std::string_view name = read_string(place);
        if (name.size() > kMostTensorName)
            fail("{} has a name of {} bytes; at most {} are allowed; damaged", place, name.size(),
                 kMostTensorName);
        check_tensor_name(path_, place, name);
        t.name = name;
        t.file = file_;

        const std::string what = fmt::format("tensor {} (at byte {})", shown(name), begin);
        const uint32_t n_dims = in_.number<uint32_t>(what);
        if (n_dims == 0 || n_dims > t.dims.size())
            fail("{} has {} dimensions; there must be 1 to {}; damaged", what, n_dims,
                 t.dims.size());
        t.n_dims = uint8_t(n_dims);
        for (uint32_t i = n_dims; i-- > 0;)
            t.dims[i] = in_.number<uint64_t>(what);  // fastest first
        t.shape = checked_shape(path_, what, std::span(t.dims).first(n_dims));
        const uint64_t bytes = read_type(t, what);
        t.offset = in_.number<uint64_t>(what);
        if (t.offset % alignment != 0)
            fail("{} begins at {} of the data, which is no multiple of the alignment {}; damaged",
                 what, t.offset, alignment);
        sizes_.push_back(bytes);
        contents_.tensors.push_back(std::move(t));
    }

    /// Returns the bytes of the tensor.
    uint64_t read_type(TensorView& t, const std::string& what) {
        const uint32_t id = in_.number<uint32_t>(what);
        const TensorType* type = find_type(id);
        if (!type) {
            const RefusedType* refused = refused_gguf(id);
            fail("{} has type {} {}", what, id,
                 refused ? fmt::format("({}), which {}", refused->name, refused->why)
                         : "that this build does not know; damaged, or newer than this build");
        }
        if (t.shape.cols % type->elements != 0)
            fail("{} has rows of {} elements; type {} needs a multiple of {}; damaged", what,
                 t.shape.cols, type->name, type->elements);
        t.dtype = type->name;
        t.codec = codec_by_gguf(id);
        // at most 2^40 elements of at most 8 bytes
        return t.shape.rows * (t.shape.cols / type->elements) * type->bytes;
    }

    /// Finds the data and turns offsets into positions in the file.
    void place_tensors(uint64_t alignment) {
        // a file is shorter than 2^63, so this fits
        const uint64_t begin = (in_.at() + alignment - 1) / alignment * alignment;
        struct Place {
            uint64_t begin, end;
            TensorView* tensor;
        };
        std::vector<Place> places;
        for (size_t i = 0; i < sizes_.size(); ++i) {
            TensorView& t = contents_.tensors[i];
            const auto first = checked_add(begin, t.offset);
            const auto end = first ? checked_add(*first, sizes_[i]) : std::nullopt;
            if (!end)
                fail("tensor {} begins at {} of the data, beyond 2^64; damaged", shown(t.name),
                     t.offset);
            places.push_back({*first, *end, &t});
        }
        const auto last = std::ranges::max_element(places, {}, &Place::end);
        if (last != places.end() && last->end > bytes_.size())
            fail(
                "tensor {} ends at byte {}, but the file has {} bytes: {} bytes are missing; fetch "
                "it again",
                shown(last->tensor->name), last->end, bytes_.size(), last->end - bytes_.size());
        std::ranges::sort(places, {}, &Place::begin);
        for (size_t i = 0; i < places.size(); ++i) {
            const Place& p = places[i];
            if (i > 0 && p.begin < places[i - 1].end)
                fail("tensor {} begins at byte {}, but {} ends at {}: they overlap; damaged",
                     shown(p.tensor->name), p.begin, shown(places[i - 1].tensor->name),
                     places[i - 1].end);
            p.tensor->offset = p.begin;
            p.tensor->bytes = bytes_.subspan(p.begin, p.end - p.begin);
        }
    }

    std::span<const std::byte> bytes_;
    const std::string& path_;
    uint32_t file_;
    ByteReader in_;
    uint64_t n_tensors_ = 0, n_keys_ = 0;
    GgufContents contents_;
    GgufKeys keys_;
    std::vector<uint64_t> sizes_;  // of the tensors, in the order of the header
};

}  // namespace

GgufContents read_gguf(std::span<const std::byte> bytes, const std::string& path, uint32_t file) {
    return Reader(bytes, path, file).read();
}

}  // namespace hf
