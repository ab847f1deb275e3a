#include "libcore/arch/config_fields.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cmath>

#include "libcore/base/error.h"

namespace hf {

struct ConfigFields::Document {
    simdjson::dom::parser parser;
    simdjson::dom::element whole, text_model;  // the same when nothing is nested

    /// The element at a dotted key; nullopt when it is absent or null.
    static std::optional<simdjson::dom::element> find_in(simdjson::dom::element at,
                                                         std::string_view key) {
        while (true) {
            const size_t dot = key.find('.');
            if (at[key.substr(0, dot)].get(at) != simdjson::SUCCESS) return std::nullopt;
            if (dot == std::string_view::npos) break;
            key.remove_prefix(dot + 1);
        }
        if (at.is_null()) return std::nullopt;
        return at;
    }
    std::optional<simdjson::dom::element> find(std::string_view key) const {
        const auto nested = find_in(text_model, key);
        return nested ? nested : find_in(whole, key);
    }
};

ConfigFields::ConfigFields(std::string label, std::string_view json)
    : label_(std::move(label)), document_(std::make_unique<Document>()) {
    simdjson::dom::element& whole = document_->whole;
    const auto error = document_->parser.parse(simdjson::padded_string(json)).get(whole);
    if (error || !whole.is_object())
        throw Error(
            fmt::format("{}: not a JSON object ({}); the file is damaged or not a model's "
                        "configuration",
                        label_, error ? simdjson::error_message(error) : "another type"));
    simdjson::dom::element nested;
    const bool composite =
        whole["text_config"].get(nested) == simdjson::SUCCESS && nested.is_object();
    document_->text_model = composite ? nested : whole;
}

ConfigFields::~ConfigFields() = default;

void ConfigFields::fail(std::string_view key, std::string_view what) const {
    throw Error(fmt::format("{}: key '{}' {}", label_, key, what));
}

bool ConfigFields::has(std::string_view key) const {
    return document_->find(key).has_value();
}

uint32_t ConfigFields::uint(std::string_view key, uint32_t least, uint32_t most,
                            std::optional<uint32_t> fallback) const {
    const auto element = document_->find(key);
    if (!element) {
        if (fallback) return *fallback;
        fail(key, "is missing");
    }
    uint64_t value;
    if (element->get(value) != simdjson::SUCCESS)
        fail(key, fmt::format("is {}, not a whole number from {} to {}", simdjson::minify(*element),
                              least, most));
    if (value < least || value > most)
        fail(key, fmt::format("is {}; it must be from {} to {}", value, least, most));
    return uint32_t(value);
}

double ConfigFields::number(std::string_view key, double least, double most,
                            std::optional<double> fallback) const {
    const auto element = document_->find(key);
    if (!element) {
        if (fallback) return *fallback;
        fail(key, "is missing");
    }
    double value;
    if (element->get(value) != simdjson::SUCCESS)
        fail(key, fmt::format("is {}, not a number", simdjson::minify(*element)));
    if (!(value >= least && value <= most))
        fail(key, fmt::format("is {}; it must be from {} to {}", value, least, most));
    return value;
}

std::string ConfigFields::text(std::string_view key, std::string_view fallback) const {
    const auto element = document_->find(key);
    std::string_view value = fallback;
    if (element && element->get(value) != simdjson::SUCCESS) fail(key, "is not a string");
    return std::string(value);
}

bool ConfigFields::boolean(std::string_view key, bool fallback) const {
    const auto element = document_->find(key);
    bool value = fallback;
    if (element && element->get(value) != simdjson::SUCCESS) fail(key, "is neither true nor false");
    return value;
}

std::optional<std::vector<std::string>> ConfigFields::texts(std::string_view key) const {
    const auto element = document_->find(key);
    if (!element) return std::nullopt;
    if (!element->is_array()) fail(key, "is not a list");
    std::vector<std::string> values;
    for (simdjson::dom::element item : element->get_array()) {
        std::string_view value;
        if (item.get(value) != simdjson::SUCCESS) fail(key, "holds something other than strings");
        values.emplace_back(value);
    }
    return values;
}

std::vector<int32_t> ConfigFields::ids(std::string_view key) const {
    const auto element = document_->find(key);
    std::vector<int32_t> values;
    if (!element) return values;
    const auto take = [&](simdjson::dom::element item) {
        int64_t value;
        if (item.get(value) != simdjson::SUCCESS || value < 0 || value > INT32_MAX)
            fail(key, fmt::format("is {}, not a token id or a list of them",
                                  simdjson::minify(*element)));
        values.push_back(int32_t(value));
    };
    if (!element->is_array())
        take(*element);
    else
        for (simdjson::dom::element item : element->get_array()) take(item);
    return values;
}

}  // namespace hf
