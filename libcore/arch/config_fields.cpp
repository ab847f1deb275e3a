#include "libcore/arch/config_fields.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libcore/base/error.h"

namespace hf {
namespace {

using Json = nlohmann::json;

constexpr int kMostDepth = 32;  // what lies deeper is not read

/// A value as messages show it: at most 100 bytes of it.
std::string shown(const Json& value) {
    constexpr size_t kMost = 100;
    std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
    if (text.size() > kMost) text = text.substr(0, kMost) + "...";
    return text;
}

/// The value at a dotted key; null when it is absent or null.
const Json* find_in(const Json* at, std::string_view key) {
    while (true) {
        const size_t dot = key.find('.');
        if (!at->is_object()) return nullptr;
        const auto found = at->find(std::string(key.substr(0, dot)));
        if (found == at->end()) return nullptr;
        at = &*found;
        if (dot == std::string_view::npos) break;
        key.remove_prefix(dot + 1);
    }
    return at->is_null() ? nullptr : at;
}

}  // namespace

/// A tree, and not simdjson's: a number beyond 64 bits, as tokenizers write for "no limit", must
/// not make the whole text unreadable.
struct ConfigFields::Document {
    Json whole;
    const Json* text_model = nullptr;  // `whole` when nothing is nested

    const Json* find(std::string_view key) const {
        const Json* nested = find_in(text_model, key);
        return nested ? nested : find_in(&whole, key);
    }
};

ConfigFields::ConfigFields(std::string label, std::string_view json)
    : label_(std::move(label)), document_(std::make_unique<Document>()) {
    Json& whole = document_->whole;
    const auto shallow = [](int depth, Json::parse_event_t, Json&) { return depth < kMostDepth; };
    whole = Json::parse(json, shallow, /*allow_exceptions=*/false);
    if (!whole.is_object())
        throw Error(
            fmt::format("{}: not a JSON object ({}); the file is damaged or not a model's "
                        "configuration",
                        label_, whole.is_discarded() ? "no JSON" : whole.type_name()));
    const Json* nested = find_in(&whole, "text_config");
    document_->text_model = nested && nested->is_object() ? nested : &whole;
}

ConfigFields::~ConfigFields() = default;

void ConfigFields::fail(std::string_view key, std::string_view what) const {
    throw Error(fmt::format("{}: key '{}' {}", label_, key, what));
}

bool ConfigFields::has(std::string_view key) const {
    return document_->find(key) != nullptr;
}

void ConfigFields::check_object(std::string_view key) const {
    const Json* found = document_->find(key);
    if (found && !found->is_object()) fail(key, fmt::format("is {}, not an object", shown(*found)));
}

uint32_t ConfigFields::uint(std::string_view key, uint32_t least, uint32_t most,
                            std::optional<uint32_t> fallback) const {
    const Json* found = document_->find(key);
    if (!found) {
        if (fallback) return *fallback;
        fail(key, "is missing");
    }
    if (!found->is_number_unsigned())
        fail(key,
             fmt::format("is {}, not a whole number from {} to {}", shown(*found), least, most));
    const uint64_t value = found->get<uint64_t>();
    if (value < least || value > most)
        fail(key, fmt::format("is {}; it must be from {} to {}", value, least, most));
    return uint32_t(value);
}

double ConfigFields::number(std::string_view key, double least, double most,
                            std::optional<double> fallback) const {
    const Json* found = document_->find(key);
    if (!found) {
        if (fallback) return *fallback;
        fail(key, "is missing");
    }
    if (!found->is_number()) fail(key, fmt::format("is {}, not a number", shown(*found)));
    const double value = found->get<double>();
    if (!(value >= least && value <= most))
        fail(key, fmt::format("is {}; it must be from {} to {}", value, least, most));
    return value;
}

std::string ConfigFields::text(std::string_view key, std::string_view fallback) const {
    const Json* found = document_->find(key);
    if (!found) return std::string(fallback);
    if (!found->is_string()) fail(key, fmt::format("is {}, not a string", shown(*found)));
    return found->get<std::string>();
}

bool ConfigFields::boolean(std::string_view key, bool fallback) const {
    const Json* found = document_->find(key);
    if (!found) return fallback;
    if (!found->is_boolean())
        fail(key, fmt::format("is {}, neither true nor false", shown(*found)));
    return found->get<bool>();
}

std::optional<std::vector<std::string>> ConfigFields::texts(std::string_view key) const {
    const Json* found = document_->find(key);
    if (!found) return std::nullopt;
    if (!found->is_array()) fail(key, fmt::format("is {}, not a list", shown(*found)));
    std::vector<std::string> values;
    for (const Json& item : *found) {
        if (!item.is_string())
            fail(key, fmt::format("holds {}, which is not a string", shown(item)));
        values.push_back(item.get<std::string>());
    }
    return values;
}

std::vector<int32_t> ConfigFields::ids(std::string_view key) const {
    const Json* found = document_->find(key);
    std::vector<int32_t> values;
    if (!found) return values;
    const auto take = [&](const Json& item) {
        if (!item.is_number_unsigned() || item.get<uint64_t>() > INT32_MAX)
            fail(key, fmt::format("is {}, not a token id or a list of them", shown(*found)));
        values.push_back(int32_t(item.get<uint64_t>()));
    };
    if (!found->is_array())
        take(*found);
    else
        for (const Json& item : *found) take(item);
    return values;
}

}  // namespace hf
