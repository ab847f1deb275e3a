#include "libcore/file/hfq.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "libcore/base/checked.h"
#include "libcore/file/byte_reader.h"
#include "libcore/file/hfq_gguf.h"
#include "libcore/file/hfq_metadata.h"
#include "libcore/file/hfq_sidecars.h"
#include "libcore/file/message.h"
#include "libcore/file/tensor_checks.h"

namespace hf {
namespace {

constexpr uint64_t kHeaderBytes = 32, kTrailerBytes = 16;
constexpr uint64_t kLeastEntryBytes = 16;          // of the index
constexpr uint64_t kRowLimit = uint64_t(1) << 31;  // Codec::row_bytes takes fewer columns
constexpr uint32_t kQwen35Dense = 5, kQwen35Experts = 6;
constexpr std::string_view kTrailer = "HFBNDMTP";

/// The name without what may stand in front of it: names with the same core name one tensor.
std::string_view core_of(std::string_view name) {
    for (const std::string_view prefix : {"model.language_model.", "model."})
        if (name.starts_with(prefix)) return name.substr(prefix.size());
    return name;
}

/// True for "qwen3_5", "Qwen3_5ForCausalLM", "qwen3.6", "qwen35", ...
bool names_qwen35(std::string name) {
    for (char& c : name) c = char(std::tolower(static_cast<unsigned char>(c)));
    constexpr std::string_view kFamily = "qwen3";
    for (size_t at = name.find(kFamily); at != name.npos; at = name.find(kFamily, at + 1)) {
        std::string_view rest = std::string_view(name).substr(at + kFamily.size());
        if (rest.starts_with('_') || rest.starts_with('.')) rest.remove_prefix(1);
        if (rest.starts_with('5') || rest.starts_with('6')) return true;
    }
    return false;
}

/// Rows and columns as the bytes have them. In a tensor that is no matrix a row may end inside a
/// group; its elements then are one row.
Shape layout_of(const Codec& codec, Shape shape, uint8_t n_dims) {
    if (n_dims == 2 || shape.cols % cols_unit(codec) == 0) return shape;
    return {1, shape.rows * shape.cols};
}

std::string dims_of(const TensorView& t) {
    return dims_text(std::span(t.dims).first(t.n_dims));
}

class Reader {
  public:
    Reader(std::span<const std::byte> bytes, const std::string& path, const Log& log)
        : bytes_(bytes), path_(path), where_(path + ": the metadata"), log_(log) {}

    ModelFile read() {
        model_.path = path_;
        model_.container = "hfq";
        read_header();
        const auto text = bytes_.subspan(metadata_begin_, data_begin_ - metadata_begin_);
        metadata_ = read_hfq_metadata({reinterpret_cast<const char*>(text.data()), text.size()},
                                      where_, model_, log_);
        check_arch_id();
        read_index();
        place_payloads();
        check_names();
        check_hfq_sidecars(path_, tensors_);
        check_trailer();
        if (metadata_.made_from_gguf) turn_back_into_gguf();
        model_.tensors.reserve(tensors_.size());
        for (HfqTensor& t : tensors_) model_.tensors.push_back(std::move(t.view));
        sort_by_name(path_, model_.tensors);
        return std::move(model_);
    }

  private:
    template <class... Args>
    [[noreturn]] void fail(fmt::format_string<Args...> what, Args&&... args) const {
        fail_file(path_, what, std::forward<Args>(args)...);
    }

    void read_header() {
        if (bytes_.size() < kHeaderBytes)
            fail(
                "the file has {} bytes, but the header alone takes {}: {} bytes are missing; fetch "
                "it again",
                bytes_.size(), kHeaderBytes, kHeaderBytes - bytes_.size());
        ByteReader in(bytes_, path_, {"the file ends", "fetch it again"});
        const std::string_view magic = in.text(4, "the magic");
        if (magic == "HFQ!") fail("was not finished by the program that wrote it; make it again");
        if (magic != "HFQM") fail("starts with {} instead of 'HFQM'; no HFQ file", shown(magic));
        const uint32_t version = in.number<uint32_t>("the version");
        if (version != 1)
            fail("is of version {} (at byte 4); this build reads version 1{}", version,
                 version == 2 ? ", and 2 is another program's, with other formats" : "");
        arch_id_ = in.number<uint32_t>("arch_id");
        n_tensors_ = in.number<uint32_t>("the number of tensors");
        metadata_begin_ = in.number<uint64_t>("the metadata offset");
        data_begin_ = in.number<uint64_t>("the data offset");
        check_offsets();
    }

    void check_offsets() const {
        if (metadata_begin_ < kHeaderBytes || metadata_begin_ > data_begin_)
            fail(
                "the metadata begin at byte {}; it must be {} to {}, where the data begin; damaged",
                metadata_begin_, kHeaderBytes, data_begin_);
        if (data_begin_ > bytes_.size())
            fail(
                "the data begin at byte {}, but the file has {} bytes: {} bytes are missing; fetch "
                "it again",
                data_begin_, bytes_.size(), data_begin_ - bytes_.size());
        const uint64_t room = (data_begin_ - metadata_begin_) / kLeastEntryBytes;
        if (n_tensors_ > std::min<uint64_t>(room, kMostTensors))
            fail(
                "claims {} tensors (at byte 12); there is room for {}, and at most {} are allowed; "
                "damaged",
                n_tensors_, room, kMostTensors);
    }

    /// Files of Qwen3.5 exist that are marked as something else: their weights are wrong.
    void check_arch_id() const {
        if (arch_id_ == kQwen35Dense || arch_id_ == kQwen35Experts) return;
        std::vector<std::string> names = names_in_config(model_.config, where_);
        names.push_back(metadata_.architecture);
        const auto found = std::ranges::find_if(names, names_qwen35);
        if (found != names.end())
            fail(
                "arch_id (at byte 8) is {}, but the metadata name {}, whose arch_id is {} or {}; "
                "convert the model again",
                arch_id_, shown(*found), kQwen35Dense, kQwen35Experts);
    }

    void read_index() {
        ByteReader in(bytes_.first(data_begin_), path_, {"the data begin", "damaged"});
        in.take(metadata_begin_ + metadata_.bytes, "the metadata");
        const uint64_t at = in.at();
        const uint32_t count = in.number<uint32_t>("the index");
        if (count != n_tensors_)
            fail("the index (at byte {}) has {} tensors, the header (at byte 12) {}; damaged", at,
                 count, n_tensors_);
        tensors_.reserve(n_tensors_);
        for (uint32_t i = 0; i < n_tensors_; ++i) read_entry(in);
    }

    /// Reads what the index says of a tensor; the payload is found when all are known.
    void read_entry(ByteReader& in) {
        const std::string place = fmt::format("the tensor at byte {}", in.at());
        const std::string_view name = in.text(in.number<uint16_t>(place), place);
        check_tensor_name(path_, place, name);
        const std::string what = fmt::format("{}, {},", place, shown(name));

        HfqTensor tensor{};
        TensorView& t = tensor.view;
        t.name = name;
        tensor.format = in.number<uint8_t>(what);
        t.codec = codec_by_hfq(tensor.format);
        t.dtype = format_name(t.codec, tensor.format);
        t.n_dims = in.number<uint8_t>(what);
        if (t.n_dims == 0 || t.n_dims > t.dims.size())
            fail("{} has {} dimensions; there must be 1 to {}; damaged", what, t.n_dims,
                 t.dims.size());
        const auto dims = std::span(t.dims).first(t.n_dims);
        for (uint64_t& dim : dims) dim = in.number<uint32_t>(what);
        if (metadata_.made_from_gguf) std::ranges::reverse(dims);  // fastest first
        t.shape = checked_shape(path_, what, dims);
        in.number<uint32_t>(what);  // the group size, which the format knows
        const uint64_t bytes = in.number<uint64_t>(what);
        if (t.codec) check_size(t, bytes, what);
        tensors_.push_back(std::move(tensor));
        sizes_.push_back(bytes);
    }

    static std::string format_name(const Codec* codec, uint8_t format) {
        if (codec) return std::string(codec->name);
        const RefusedType* refused = refused_hfq(format);
        return fmt::format("{} ({})", format, refused ? refused->name : "unknown");
    }

    void check_size(TensorView& t, uint64_t bytes, const std::string& what) const {
        const Codec& codec = *t.codec;
        const uint64_t elements = t.shape.rows * t.shape.cols;
        t.shape = layout_of(codec, t.shape, t.n_dims);
        if (t.shape.cols % cols_unit(codec) != 0)
            fail("{} has rows of {} elements; format {} needs a multiple of {}; damaged", what,
                 t.shape.cols, codec.name, cols_unit(codec));
        if (t.shape.cols >= kRowLimit)
            fail("{} has rows of {} elements; they must be below {}", what, t.shape.cols,
                 kRowLimit);
        const uint64_t need = tensor_bytes(codec, t.shape);
        if (bytes == need) return;
        if (codec.pads_rows && elements < kRowLimit && bytes == codec.row_bytes(elements))
            fail(
                "{} has {} bytes: its rows are not padded, as older converters wrote them; {} are "
                "needed; quantise the model again",
                what, bytes, need);
        fail("{} has {} bytes, but shape {} of {} needs {}; damaged", what, bytes, dims_of(t),
             codec.name, need);
    }

    /// Payloads follow each other in the order of the index.
    void place_payloads() {
        uint64_t at = data_begin_;
        for (size_t i = 0; i < tensors_.size(); ++i) {
            TensorView& t = tensors_[i].view;
            const std::optional<uint64_t> end = checked_add(at, sizes_[i]);
            if (!end)
                fail("tensor {} begins at byte {} and has {} bytes; it ends beyond 2^64; damaged",
                     shown(t.name), at, sizes_[i]);
            t.offset = std::exchange(at, *end);
        }
        if (at > bytes_.size())
            fail(
                "the last tensor, {}, ends at byte {}, but the file has {} bytes: {} bytes are "
                "missing; fetch it again",
                shown(tensors_.back().view.name), at, bytes_.size(), at - bytes_.size());
        for (size_t i = 0; i < tensors_.size(); ++i)
            tensors_[i].view.bytes = bytes_.subspan(tensors_[i].view.offset, sizes_[i]);
        data_end_ = at;
    }

    /// Sorts by name.
    void check_names() {
        const auto name = [](const HfqTensor& t) -> const std::string& { return t.view.name; };
        std::ranges::sort(tensors_, {}, name);
        std::vector<const TensorView*> by_core;
        for (const HfqTensor& t : tensors_) by_core.push_back(&t.view);
        const auto core = [](const TensorView* t) { return core_of(t->name); };
        std::ranges::sort(by_core, {}, core);
        const auto twice = std::ranges::adjacent_find(by_core, {}, core);
        if (twice == by_core.end()) return;
        const TensorView &a = *twice[0], &b = *twice[1];
        fail("tensors {} (payload at byte {}) and {} (at byte {}) are the same one; damaged",
             shown(a.name), a.offset, shown(b.name), b.offset);
    }

    /// Behind the payloads anything may follow. A second container is announced by a trailer.
    void check_trailer() const {
        if (bytes_.size() - data_end_ < kTrailerBytes) return;
        const uint64_t trailer = bytes_.size() - kTrailerBytes;
        ByteReader in(bytes_.subspan(trailer), path_, {"the file ends", ""});
        if (in.text(kTrailer.size(), "the trailer") != kTrailer) return;
        const uint64_t at = in.number<uint64_t>("the trailer");
        if (at < data_end_ || at > trailer || trailer - at < kHeaderBytes)
            fail(
                "the trailer (at byte {}) has a second container at byte {}; it must be behind the "
                "tensors, at {}, and have {} bytes; damaged",
                trailer, at, data_end_, kHeaderBytes);
        ByteReader second(bytes_.subspan(at), path_, {"the file ends", ""});
        const std::string_view magic = second.text(4, "the magic");
        if (magic != "HFQM")
            fail(
                "the trailer (at byte {}) has a second container at byte {}, but there is {} "
                "instead of 'HFQM'; damaged",
                trailer, at, shown(magic));
    }

    void turn_back_into_gguf() {
        if (metadata_.gguf_meta.empty())
            fail_file(where_,
                      "'source' is 'gguf', but 'gguf_meta' is missing, and without it the "
                      "model is not known; convert it again");
        model_.naming = Naming::gguf;
        model_.values = Values::gguf;
        model_.gguf = gguf_keys_from_json(metadata_.gguf_meta, path_);
        model_.chat_template = model_.gguf.text("tokenizer.chat_template", "");
        model_.config.clear();  // made up by the converter, and poorer than the keys
        for (HfqTensor& t : tensors_) t.view.name = gguf_name_of(t.view.name);
    }

    std::span<const std::byte> bytes_;
    const std::string& path_;
    const std::string where_;
    const Log& log_;
    ModelFile model_;
    HfqMetadata metadata_;
    uint32_t arch_id_ = 0, n_tensors_ = 0;
    uint64_t metadata_begin_ = 0, data_begin_ = 0, data_end_ = 0;
    std::vector<HfqTensor> tensors_;  // by name once the names are checked
    std::vector<uint64_t> sizes_;     // of the payloads, in the order of the index
};

}  // namespace

ModelFile read_hfq(std::span<const std::byte> bytes, const std::string& path, const Log& log) {
    return Reader(bytes, path, log).read();
}

ModelFile open_hfq(const std::string& path, const Log& log) {
    MappedFile file(path);
    ModelFile model = read_hfq(file.bytes(), path, log);
    model.files.push_back(std::move(file));
    log.debug(fmt::format("{}: {} tensors", path, model.tensors.size()));
    return model;
}

}  // namespace hf
