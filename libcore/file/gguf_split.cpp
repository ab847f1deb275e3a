// A GGUF model of one file or of several: finds the shards and puts them together.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>

#include "libcore/file/gguf.h"
#include "libcore/file/message.h"
#include "libcore/file/tensor_checks.h"

namespace hf {
namespace {

constexpr uint32_t kMostShards = 99'999;  // five digits

/// What a name says of a shard: STEM-00001-of-00003.gguf.
struct ShardName {
    std::string stem;
    uint32_t number, count;  // number counts from 1
};

std::string name_of_shard(const ShardName& name, uint32_t number) {
    return fmt::format("{}-{:05}-of-{:05}.gguf", name.stem, number, name.count);
}

std::optional<ShardName> parse_shard_name(const std::string& path) {
    constexpr size_t kTail = std::string_view("-00001-of-00001.gguf").size();
    if (path.size() <= kTail) return std::nullopt;
    const char* tail = path.data() + path.size() - kTail;
    ShardName name{path.substr(0, path.size() - kTail), 0, 0};
    std::from_chars(tail + 1, tail + 6, name.number);
    std::from_chars(tail + 10, tail + 15, name.count);
    if (name_of_shard(name, name.number) != path) return std::nullopt;  // some other name
    return name;
}

/// Which shard a file is, by its keys or by its name.
struct Place {
    uint32_t number, count;  // number counts from 1
    bool operator==(const Place&) const = default;
};

Place place_by_keys(const GgufKeys& keys) {
    const uint32_t count =
        keys.uint("split.count", 0, kMostShards, 0);  // 0: was put together again
    return {keys.uint("split.no", 0, kMostShards, 0) + 1, std::max(count, 1u)};
}

void check_place(const std::string& path, Place keys, Place name) {
    if (keys != name)
        fail_file(path,
                  "is shard {} of {} by its keys, but {} of {} by its name; are files swapped, or "
                  "of another model?",
                  keys.number, keys.count, name.number, name.count);
}

/// Maps a file and appends its tensors; returns its keys.
GgufKeys add_file(ModelFile& model, const std::string& path) {
    const MappedFile& file = model.files.emplace_back(path);
    GgufContents contents = read_gguf(file.bytes(), file.path(), uint32_t(model.files.size() - 1));
    std::ranges::move(contents.tensors, std::back_inserter(model.tensors));
    return GgufKeys(file.path(), std::move(contents.keys));
}

/// Before any is opened, so that the message can tell how much of a download is missing.
void check_shards_are_there(const std::string& path, const ShardName& name) {
    uint32_t missing = 0, first = 0;
    for (uint32_t number = name.count; number > 0; --number) {
        std::error_code ignored;
        if (std::filesystem::exists(name_of_shard(name, number), ignored)) continue;
        ++missing;
        first = number;
    }
    if (missing > 0)
        fail_file(path, "{} of {} shards are missing, the first is {}; fetch them", missing,
                  name.count, shown(name_of_shard(name, first)));
}

/// All shards after the first, which is open already.
void add_shards(ModelFile& model, const ShardName& name) {
    check_shards_are_there(model.path, name);
    for (uint32_t number = 2; number <= name.count; ++number) {
        const std::string path = name_of_shard(name, number);
        check_place(path, place_by_keys(add_file(model, path)), {number, name.count});
    }
    const uint32_t total = model.gguf.uint("split.tensors.count", 0, uint32_t(kMostTensors));
    if (model.tensors.size() != total)
        model.gguf.fail("split.tensors.count",
                        fmt::format("is {}, but the {} shards have {} tensors; are they all of "
                                    "the same model?",
                                    total, name.count, model.tensors.size()));
}

void add_other_files(ModelFile& model) {
    const Place place = place_by_keys(model.gguf);
    const std::optional<ShardName> name = parse_shard_name(model.path);
    if (!name && place.count > 1)
        fail_file(model.path,
                  "is shard {} of {}, but its name does not end in -{:05}-of-{:05}.gguf, so the "
                  "others cannot be found; give it its name back",
                  place.number, place.count, place.number, place.count);
    if (!name) return;
    check_place(model.path, place, {name->number, name->count});
    if (place.number != 1)
        fail_file(model.path, "is shard {} of {}; give the first, {}", place.number, place.count,
                  shown(name_of_shard(*name, 1)));
    if (place.count > 1) add_shards(model, *name);
}

}  // namespace

bool is_later_shard(const std::string& path) {
    const auto name = parse_shard_name(path);
    return name && name->number > 1;
}

ModelFile open_gguf(const std::string& path, const Log& log) {
    ModelFile model;
    model.path = path;
    model.container = "gguf";
    model.naming = Naming::gguf;
    model.values = Values::gguf;
    model.gguf = add_file(model, path);
    add_other_files(model);
    sort_by_name(path, model.tensors);
    model.chat_template = model.gguf.text("tokenizer.chat_template", "");
    log.debug(fmt::format("{}: {} keys, {} tensors in {} files", path, model.gguf.all().size(),
                          model.tensors.size(), model.files.size()));
    return model;
}

}  // namespace hf
