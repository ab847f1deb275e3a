// JsonNode: a value of a JSON file that knows where it stands, so that errors can say so.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/text/vocab_builder.h"

namespace hf {

/// A whole number of 0 to kMaxTokenId, or none.
inline std::optional<int32_t> to_id(simdjson::dom::element value) {
    int64_t id;
    if (value.get(id) || id < 0 || id > kMaxTokenId) return std::nullopt;
    return int32_t(id);
}

/// A value of the file and where it stands, for errors: "FILE: model.vocab".
struct JsonNode {
    std::string where;
    simdjson::dom::element value;

    [[noreturn]] void fail(std::string_view problem) const {
        throw Error(fmt::format("{}: {}", where, problem));
    }
    [[noreturn]] void refuse(std::string_view what) const {
        fail(fmt::format(
            "{} is not supported; byte-level BPE as of Qwen, Llama 3 and SmolLM2 is, and "
            "SentencePiece as of Llama 2",
            what));
    }

    /// A member that is there and not null.
    std::optional<JsonNode> find(std::string_view key) const {
        simdjson::dom::element inner;
        if (object()[key].get(inner) || inner.is_null()) return std::nullopt;
        return JsonNode{fmt::format("{}.{}", where, key), inner};
    }
    JsonNode need(std::string_view key) const {
        const std::optional<JsonNode> node = find(key);
        if (!node) fail(fmt::format("the key {} is missing", in_quotes(key)));
        return *node;
    }
    JsonNode at(size_t index, simdjson::dom::element inner) const {
        return {fmt::format("{}[{}]", where, index), inner};
    }
    std::vector<JsonNode> items() const {
        std::vector<JsonNode> nodes;
        for (const simdjson::dom::element item : array()) nodes.push_back(at(nodes.size(), item));
        return nodes;
    }

    simdjson::dom::object object() const { return get<simdjson::dom::object>("an object"); }
    simdjson::dom::array array() const { return get<simdjson::dom::array>("a list"); }
    std::string_view text() const { return get<std::string_view>("a string"); }
    std::string_view type() const { return need("type").text(); }
    int32_t id() const {
        const std::optional<int32_t> id = to_id(value);
        if (!id)
            fail(fmt::format("the id {} is not a whole number of 0 to {}",
                             in_quotes(simdjson::minify(value)), kMaxTokenId));
        return *id;
    }
    bool flag(std::string_view key, bool otherwise) const {
        const std::optional<JsonNode> node = find(key);
        return node ? node->get<bool>("true or false") : otherwise;
    }

  private:
    template <class T>
    T get(std::string_view expected) const {
        T out;
        if (value.get(out)) fail(fmt::format("must be {}", expected));
        return out;
    }
};

}  // namespace hf
