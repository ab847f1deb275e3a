#include "libcore/file/folder.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/file/chat_template.h"
#include "libcore/file/json.h"
#include "libcore/file/message.h"
#include "libcore/file/safetensors.h"

namespace hf {
namespace {

constexpr uint64_t kMiB = uint64_t(1) << 20;
constexpr uint64_t kMostIndexBytes = 64 * kMiB;
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

struct TextFile {
    const char* name;
    uint64_t most_bytes;
    std::string ModelFile::*text;
};

constexpr TextFile kTextFiles[] = {
    {"config.json", 16 * kMiB, &ModelFile::config},
    {"generation_config.json", 16 * kMiB, &ModelFile::generation_config},
    {"tokenizer.json", 256 * kMiB, &ModelFile::tokenizer},
    {"tokenizer_config.json", 16 * kMiB, &ModelFile::tokenizer_config},
    {"chat_template.jinja", 16 * kMiB, &ModelFile::chat_template},
};

std::string inside(const std::string& folder, std::string_view name) {
    return (std::filesystem::path(folder) / name).string();
}

/// True for a link that leads nowhere too: opening it then tells, instead of passing it over.
bool is_there(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

std::string read_text(const std::string& path, uint64_t most_bytes) {
    const MappedFile file(path);
    const std::span<const std::byte> bytes = file.bytes();
    if (bytes.size() > most_bytes)
        fail_file(path, "the file has {} bytes, at most {} are allowed", bytes.size(), most_bytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void read_texts(ModelFile& model) {
    for (const TextFile& file : kTextFiles) {
        const std::string path = inside(model.path, file.name);
        if (is_there(path)) model.*file.text = read_text(path, file.most_bytes);
    }
}

void read_chat_template(ModelFile& model, const Log& log) {
    if (!model.chat_template.empty() || model.tokenizer_config.empty()) return;
    model.chat_template = embedded_chat_template(model.tokenizer_config,
                                                 inside(model.path, "tokenizer_config.json"), log);
}

/// model.safetensors.index.json: which tensor is in which shard.
struct Index {
    struct Place {
        std::string tensor;
        uint32_t shard;
    };
    std::string path;
    std::vector<std::string> shards;  // in the order of ModelFile::files
    std::vector<Place> places;        // sorted by tensor, none twice
};

bool is_plain_name(std::string_view name) {
    return !name.empty() && name != "." && name != ".." &&
           name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

/// Reads weight_map; `numbers` knows where each shard is in index.shards.
void read_weight_map(JsonReader& json, Index& index, std::map<std::string, uint32_t>& numbers) {
    if (json.peek() != JsonReader::Kind::object)
        fail_file(index.path, "'weight_map' is not a JSON object");
    json.object([&](const std::string& tensor) {
        if (index.places.size() == kMostTensors)
            fail_file(index.path, "has more than {} tensors", kMostTensors);
        if (json.peek() != JsonReader::Kind::string)
            fail_file(index.path, "the shard of tensor {} is not a string", shown(tensor));
        const std::string shard = json.string();
        if (!is_plain_name(shard))
            fail_file(index.path, "the shard {} of tensor {} is not the plain name of a file",
                      shown(shard), shown(tensor));
        const auto [known, is_new] = numbers.try_emplace(shard, uint32_t(numbers.size()));
        if (is_new) index.shards.push_back(shard);
        index.places.push_back({tensor, known->second});
    });
}

Index read_index(const std::string& path) {
    Index index{.path = path, .shards = {}, .places = {}};
    std::map<std::string, uint32_t> numbers;
    const std::string text = read_text(path, kMostIndexBytes);
    JsonReader json(text, path);
    if (json.peek() != JsonReader::Kind::object) fail_file(path, "is not a JSON object");
    json.object([&](const std::string& key) {
        if (key == "weight_map")
            read_weight_map(json, index, numbers);
        else
            json.skip();
    });
    json.end();
    if (index.places.empty()) fail_file(path, "'weight_map' is missing or empty");

    std::ranges::sort(index.places, {}, &Index::Place::tensor);
    const auto twice = std::ranges::adjacent_find(index.places, {}, &Index::Place::tensor);
    if (twice != index.places.end())
        fail_file(path, "tensor {} is there twice; damaged", shown(twice->tensor));
    return index;
}

/// Before anything is opened, so that the message can tell how much of a download is missing.
void check_shards_are_there(const std::string& folder, const Index& index) {
    std::vector<std::string> missing;
    for (const std::string& shard : index.shards)
        if (!is_there(inside(folder, shard))) missing.push_back(shown(shard));
    if (!missing.empty())
        fail_file(index.path,
                  "{} of {} shards are missing in the folder, the first is {}; fetch them",
                  missing.size(), index.shards.size(), missing.front());
}

/// Maps one file of weights and appends its tensors; returns how many there are.
size_t open_weights(ModelFile& model, std::string_view name) {
    const MappedFile& file = model.files.emplace_back(inside(model.path, name));
    const uint32_t number = uint32_t(model.files.size() - 1);
    std::vector<TensorView> tensors = read_safetensors(file.bytes(), file.path(), number);
    std::ranges::move(tensors, std::back_inserter(model.tensors));
    return tensors.size();
}

/// The tensor is in the shard where the index has it.
void check_place(const TensorView& t, const Index& index) {
    const auto place = std::ranges::lower_bound(index.places, t.name, {}, &Index::Place::tensor);
    const std::string& shard = index.shards[t.file];
    if (place == index.places.end() || place->tensor != t.name)
        fail_file(index.path, "tensor {} is in shard {}, but the index does not list it",
                  shown(t.name), shown(shard));
    if (place->shard != t.file)
        fail_file(index.path, "tensor {} should be in shard {}, but is in {}; are they swapped?",
                  shown(t.name), shown(index.shards[place->shard]), shown(shard));
}

void open_shards(ModelFile& model, const std::string& index_path) {
    const Index index = read_index(index_path);
    check_shards_are_there(model.path, index);
    for (const std::string& shard : index.shards) {
        const size_t count = open_weights(model, shard);
        for (const TensorView& t : std::span(model.tensors).last(count)) check_place(t, index);
    }
    std::ranges::sort(model.tensors, {}, &TensorView::name);
    for (const Index::Place& place : index.places)
        if (!model.find(place.tensor))
            fail_file(index.path, "tensor {} should be in shard {}, but is not there",
                      shown(place.tensor), shown(index.shards[place.shard]));
}

}  // namespace

ModelFile open_folder_texts(const std::string& path, const Log& log) {
    ModelFile model;
    model.path = path;
    model.container = "safetensors";
    read_texts(model);
    if (model.config.empty() && model.tokenizer.empty())
        fail_file(path, "has neither config.json nor tokenizer.json; no model folder");
    read_chat_template(model, log);
    return model;
}

ModelFile open_folder(const std::string& path, const Log& log) {
    if (!is_there(inside(path, "config.json")))
        fail_file(path, "has no config.json; no model folder, or incomplete");
    ModelFile model = open_folder_texts(path, log);

    const bool whole = is_there(inside(path, kWeights));
    const bool sharded = is_there(inside(path, kIndex));
    if (!whole && !sharded) fail_file(path, "has neither {} nor {}", kWeights, kIndex);
    if (whole && sharded)
        log.warn(fmt::format("{}: {} is used, {} is ignored", path, kWeights, kIndex));
    if (whole)
        open_weights(model, kWeights);
    else
        open_shards(model, inside(path, kIndex));
    log.debug(
        fmt::format("{}: {} tensors in {} files", path, model.tensors.size(), model.files.size()));
    return model;
}

}  // namespace hf
