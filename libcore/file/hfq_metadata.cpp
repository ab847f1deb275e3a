#include "libcore/file/hfq_metadata.h"

#include <set>
#include <vector>

#include "libcore/file/chat_template.h"
#include "libcore/file/json.h"
#include "libcore/file/message.h"

namespace hf {
namespace {

using Kind = JsonReader::Kind;

constexpr uint64_t kMiB = uint64_t(1) << 20;
constexpr size_t kMostKeys = 4096, kMostKeyBytes = 4096;  // keep a hostile header's cost bounded

struct Text {
    std::string_view key;
    Kind kind;  // an object is taken as it is spelled; null counts as absent
    uint64_t most_bytes;
    std::string ModelFile::*text;
};

constexpr Text kTexts[] = {
    {"config", Kind::object, 16 * kMiB, &ModelFile::config},
    {"generation_config", Kind::object, 16 * kMiB, &ModelFile::generation_config},
    {"tokenizer", Kind::string, 256 * kMiB, &ModelFile::tokenizer},
    {"tokenizer_config", Kind::object, 16 * kMiB, &ModelFile::tokenizer_config},
};

class Reader {
  public:
    Reader(std::string_view text, const std::string& where, ModelFile& model)
        : json_(text, where), where_(where), model_(model) {}

    HfqMetadata read() {
        json_.object([this](const std::string& key) { read_member(key); });
        if (model_.config.empty()) fail_file(where_, "has no 'config'; no whole model");
        if (model_.tokenizer == "{}") model_.tokenizer.clear();  // written where there was none
        metadata_.bytes = json_.at();
        return std::move(metadata_);
    }

  private:
    void read_member(const std::string& key) {
        if (key.size() > kMostKeyBytes)
            fail_file(where_, "has the key {} of {} bytes; at most {} are allowed", shown(key),
                      key.size(), kMostKeyBytes);
        if (!keys_.insert(key).second) fail_file(where_, "has key {} twice; damaged", shown(key));
        if (keys_.size() > kMostKeys) fail_file(where_, "has more than {} keys", kMostKeys);
        for (const Text& text : kTexts)
            if (text.key == key) return read_text(text);
        if (key == "architecture")
            metadata_.architecture = read_string(key);
        else if (key == "source")
            read_source();
        else if (key == "gguf_meta")
            metadata_.gguf_meta = read_object(key);
        else
            json_.skip();
    }

    /// Empty for null.
    std::string_view read_object(std::string_view key) {
        const Kind kind = json_.peek();
        const std::string_view raw = json_.raw();
        if (kind == Kind::null) return {};
        if (kind != Kind::object) fail_file(where_, "'{}' is not an object", key);
        return raw;
    }
    std::string read_string(std::string_view key) {
        const Kind kind = json_.peek();
        if (kind == Kind::string) return json_.string();
        if (kind != Kind::null) fail_file(where_, "'{}' is not a string", key);
        json_.skip();
        return {};
    }

    void read_text(const Text& text) {
        std::string value =
            text.kind == Kind::object ? std::string(read_object(text.key)) : read_string(text.key);
        if (value.size() > text.most_bytes)
            fail_file(where_, "'{}' has {} bytes, at most {} are allowed", text.key, value.size(),
                      text.most_bytes);
        model_.*text.text = std::move(value);
    }

    void read_source() {
        const std::string source = read_string("source");
        metadata_.made_from_gguf = source == "gguf";
        if (!source.empty() && !metadata_.made_from_gguf)
            fail_file(where_,
                      "'source' is {}; this build knows the conventions of 'gguf' and of "
                      "files without a source",
                      shown(source));
    }

    JsonReader json_;
    const std::string& where_;
    ModelFile& model_;
    HfqMetadata metadata_;
    std::set<std::string> keys_;
};

}  // namespace

HfqMetadata read_hfq_metadata(std::string_view text, const std::string& where, ModelFile& model,
                              const Log& log) {
    HfqMetadata metadata = Reader(text, where, model).read();
    if (!model.tokenizer_config.empty())
        model.chat_template =
            embedded_chat_template(model.tokenizer_config, where + ": 'tokenizer_config'", log);
    return metadata;
}

std::vector<std::string> names_in_config(const std::string& config, const std::string& where) {
    std::vector<std::string> names;
    JsonReader json(config, where);
    const auto read_name = [&] {
        if (json.peek() == Kind::string)
            names.push_back(json.string());
        else
            json.skip();
    };
    json.object([&](const std::string& key) {
        if (key == "model_type")
            read_name();
        else if (key == "architectures" && json.peek() == Kind::array)
            json.array(read_name);
        else
            json.skip();
    });
    return names;
}

}  // namespace hf
