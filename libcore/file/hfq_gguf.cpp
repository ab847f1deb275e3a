#include "libcore/file/hfq_gguf.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "libcore/file/gguf.h"
#include "libcore/file/json.h"
#include "libcore/file/message.h"

namespace hf {
namespace {

using Kind = JsonReader::Kind;

constexpr uint64_t kMostBytes = 16 << 20;

/// Turns JSON values into the bytes that a GGUF file would have for them.
class Encoder {
  public:
    Encoder(std::string_view json, const std::string& label)
        : where_(label + ": 'gguf_meta'"),
          label_(label),
          json_(json, where_),
          storage_(std::make_shared<std::string>()) {
        // 8 bytes for "1," are the worst there is; views must not move
        storage_->reserve(4 * json.size());
    }

    GgufKeys encode() {
        json_.object([this](const std::string& name) { add_key(name); });
        json_.end();
        std::ranges::sort(keys_, {}, &GgufKey::name);
        const auto twice = std::ranges::adjacent_find(keys_, {}, &GgufKey::name);
        if (twice != keys_.end())
            fail_file(where_, "has key {} twice; damaged", shown(twice->name));
        return GgufKeys(label_, std::move(keys_), storage_);
    }

  private:
    void add_key(const std::string& name) {
        if (json_.peek() == Kind::null) return json_.skip();
        if (keys_.size() == kMostGgufKeys)
            fail_file(where_, "has more than {} keys", kMostGgufKeys);
        GgufKey key{};
        key.name = append(name);
        const size_t begin = storage_->size();
        if (json_.peek() == Kind::array) {
            key.is_list = true;
            key.count = 0;
            key.type = GgufType::i64;  // of an empty list
            json_.array([&] {
                add_value(key, name, begin, key.count == 0);
                ++key.count;
            });
        } else {
            add_value(key, name, begin, true);
        }
        key.bytes = std::as_bytes(std::span(*storage_)).subspan(begin);
        keys_.push_back(key);
    }

    std::string_view append(std::string_view bytes) {
        HF_ASSERT(bytes.size() <= storage_->capacity() - storage_->size());
        const size_t begin = storage_->size();
        storage_->append(bytes);
        return std::string_view(*storage_).substr(begin);
    }
    template <class T>
    void append_number(T value) {
        append({reinterpret_cast<const char*>(&value), sizeof value});
    }

    /// Appends one value; the first one decides the type, but a fraction turns whole numbers into
    /// fractions.
    void add_value(GgufKey& key, const std::string& name, size_t begin, bool first) {
        const GgufType type = append_value(name);
        if (first) key.type = type;
        if (type == key.type) return;
        if (key.type == GgufType::i64 && type == GgufType::f64) {
            to_fractions(begin, storage_->size() - sizeof(double));
            key.type = GgufType::f64;
        } else if (key.type == GgufType::f64 && type == GgufType::i64) {
            to_fractions(storage_->size() - sizeof(int64_t), storage_->size());
        } else {
            fail_file(where_, "key {} is a list of {} and {}; damaged", shown(name),
                      name_of(key.type), name_of(type));
        }
    }

    void to_fractions(size_t begin, size_t end) {
        for (size_t at = begin; at < end; at += sizeof(int64_t)) {
            int64_t whole;
            std::memcpy(&whole, storage_->data() + at, sizeof whole);
            const double fraction = double(whole);
            std::memcpy(storage_->data() + at, &fraction, sizeof fraction);
        }
    }

    GgufType append_value(const std::string& name) {
        const Kind kind = json_.peek();
        if (kind == Kind::string) {
            const std::string text = json_.string();
            append_number(uint64_t(text.size()));
            append(text);
            return GgufType::string;
        }
        if (kind == Kind::boolean) {
            append_number(uint8_t(json_.raw() == "true"));
            return GgufType::boolean;
        }
        if (kind == Kind::number) return append_spelled(name, json_.number());
        fail_file(where_, "key {} holds {}; there may be numbers, strings and booleans",
                  shown(name),
                  kind == Kind::array  ? "a list in a list"
                  : kind == Kind::null ? "null in a list"
                                       : "an object");
    }

    GgufType append_spelled(const std::string& name, std::string_view spelled) {
        const char* end = spelled.data() + spelled.size();
        int64_t whole;
        if (const auto [stop, error] = std::from_chars(spelled.data(), end, whole);
            error == std::errc() && stop == end) {
            append_number(whole);
            return GgufType::i64;
        }
        double fraction;
        if (std::from_chars(spelled.data(), end, fraction).ec != std::errc())
            fail_file(where_, "key {} holds {}, which is beyond all types; damaged", shown(name),
                      shown(spelled));
        append_number(fraction);
        return GgufType::f64;
    }

    std::string where_;
    const std::string& label_;
    JsonReader json_;
    std::shared_ptr<std::string> storage_;
    std::vector<GgufKey> keys_;
};

struct Renamed {
    std::string_view hugging_face, gguf;
};

constexpr Renamed kOfModel[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"lm_head.weight", "output.weight"},
    {"model.norm.weight", "output_norm.weight"},
};

constexpr std::string_view kLayers = "model.layers.", kWeight = ".weight";
constexpr Renamed kOfLayer[] = {
    {"input_layernorm", "attn_norm"},    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},      {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};

}  // namespace

GgufKeys gguf_keys_from_json(std::string_view json, const std::string& label) {
    if (json.size() > kMostBytes)
        fail_file(label, "'gguf_meta' has {} bytes, at most {} are allowed", json.size(),
                  kMostBytes);
    return Encoder(json, label).encode();
}

std::string gguf_name_of(std::string_view name) {
    for (const Renamed& row : kOfModel)
        if (row.hugging_face == name) return std::string(row.gguf);
    if (!name.starts_with(kLayers) || !name.ends_with(kWeight)) return std::string(name);
    const std::string_view rest = name.substr(kLayers.size());  // "0.mlp.up_proj.weight"
    const size_t dot = rest.find('.');
    if (dot + kWeight.size() >= rest.size()) return std::string(name);
    std::string_view slot = rest.substr(dot + 1, rest.size() - dot - 1 - kWeight.size());
    for (const Renamed& row : kOfLayer)
        if (row.hugging_face == slot) slot = row.gguf;
    return fmt::format("blk.{}.{}{}", rest.substr(0, dot), slot, kWeight);
}

}  // namespace hf
