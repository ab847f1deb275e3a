#include "libcore/config/toml_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "libcore/base/error.h"
#include "libcore/config/nearest.h"

namespace hf {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestFile = size_t{1} << 20;

// toml++ bounds the nesting of values but not of dotted keys, and recurses into both; tens of
// thousands of levels end in a stack overflow. No key is nested deeper than the file has dots.
constexpr ptrdiff_t kMostDots = 4096;

constexpr std::string_view kTypeNames[] = {  // by toml::node_type
    "nothing",    "a table",     "an array", "the text", "the integer",
    "the number", "the boolean", "a date",   "a time",   "a date and time"};

/// The value as a flag would spell it; nothing for types that no key has.
std::optional<std::string> text_of(const toml::node& node) {
    if (const auto* value = node.as_string()) return value->get();
    if (const auto* value = node.as_integer()) return fmt::format("{}", value->get());
    if (const auto* value = node.as_floating_point()) return fmt::format("{}", value->get());
    if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
    return {};
}

/// "the integer 8", "an array".
std::string described(const toml::node& node) {
    const std::string_view type = kTypeNames[size_t(node.type())];
    const auto text = text_of(node);
    return text ? fmt::format("{} {}", type, one_line(*text)) : std::string(type);
}

bool is_zero_or_one(const toml::node& node) {
    const auto* number = node.as_integer();
    return number && (number->get() == 0 || number->get() == 1);
}

/// Whether this TOML type can hold a value of this kind: "512" is not the number 512.
bool type_fits(const Value& value, const toml::node& node) {
    const bool is_number = value.kind == Kind::integer || value.kind == Kind::number;
    if (const auto* text = node.as_string())
        return !is_number || std::ranges::find(value.words, text->get()) != value.words.end();
    if (value.kind == Kind::word) return node.is_boolean() || is_zero_or_one(node);
    return is_number &&
           (node.is_integer() || (node.is_floating_point() && value.kind == Kind::number));
}

bool is_empty_text(const toml::node& node) {
    const auto* text = node.as_string();
    return text && text->get().empty();
}

bool is_group(std::string_view path) {
    return std::ranges::any_of(config_keys(), [&](const Key& key) {
        return key.path.starts_with(path) && key.path.substr(path.size()).starts_with('.');
    });
}

struct Reader {
    const std::string& label;
    const std::string& home;

    template <class T>  // a toml::key or a toml::node
    std::string at(const T& part) const {
        return fmt::format("{}:{}", label, part.source().begin.line);
    }

    template <class T>
    [[noreturn]] void fail(const T& part, const std::string& sentence) const {
        throw Error(at(part) + ": " + sentence, Fault::usage);
    }

    const toml::table& as_table(const toml::node& node, std::string_view name) const {
        if (const toml::table* table = node.as_table()) return *table;
        fail(node,
             fmt::format("'{}' must be a table, but it is {}", one_line(name), described(node)));
    }

    std::string path(std::string_view text) const {
        if (text.starts_with("~/") && !home.empty()) return fs::path(home) / text.substr(2);
        return (fs::path(label).parent_path() / text).lexically_normal();
    }

    Setting setting(const Key& key, const toml::node& node) const {
        if (!type_fits(key.value, node)) refuse_value(key, described(node), at(node));
        const std::string text = *text_of(node);
        const bool is_path = key.value.kind == Kind::path && text.find('/') != text.npos;
        return checked_setting(key, is_path ? path(text) : text, at(node));
    }

    /// Adds what `name = node` sets: one key, or a group of them. `owner` is "" or "models.small.".
    void add(const toml::key& name, const toml::node& node, const std::string& owner,
             const std::string& group, std::vector<Setting>& out) const {
        const std::string_view quote = name.str().find('.') == name.str().npos ? "" : "\"";
        const std::string key_path = fmt::format("{}{}{}{}", group, quote, name.str(), quote);
        if (const Key* key = find_key(key_path)) {
            if (!is_empty_text(node)) out.push_back(setting(*key, node));
            return;
        }
        if (!is_group(key_path))
            fail(name, fmt::format("unknown key '{}'{}{}", one_line(owner + key_path),
                                   nearest_words(nearest_key(key_path)),
                                   node.is_table() && !owner.empty()
                                       ? "; a name with a dot is written in quotes"
                                       : ""));
        for (const auto& [child, value] : as_table(node, owner + key_path))
            add(child, value, owner, key_path + ".", out);
    }

    std::string model_path(const toml::node& node, const std::string& owner) const {
        const auto* text = node.as_string();
        if (!text || text->get().empty() || text->get().find('\0') != std::string::npos)
            fail(node, fmt::format("'{}.path' must be a path, but it is {}", one_line(owner),
                                   described(node)));
        return path(text->get());
    }

    KnownModel model(const toml::key& name, const toml::node& node) const {
        const std::string owner = fmt::format("models.{}", name.str());
        KnownModel model{std::string(name.str()), {}, at(name), {}};
        for (const auto& [child, value] : as_table(node, owner)) {
            if (child.str() != "path")
                add(child, value, owner + ".", "", model.overrides);
            else
                model.path = model_path(value, owner);
        }
        if (model.path.empty())
            fail(name, fmt::format("'{}' has no path; add path = \"...\"", one_line(owner)));
        if (model.name == find_key("run.model")->preset)
            fail(name, fmt::format("'{}' is the model that comes with hipfire; use another name",
                                   one_line(owner)));
        for (const Setting& setting : model.overrides)
            if (setting.key->path == "run.model")
                fail(name, fmt::format("'{}' cannot set run.model", one_line(owner)));
        return model;
    }

    Profile profile(const toml::key& name, const toml::node& node) const {
        const std::string owner = fmt::format("profiles.{}", name.str());
        Profile profile{std::string(name.str()), {}};
        for (const auto& [child, value] : as_table(node, owner))
            add(child, value, owner + ".", "", profile.settings);
        return profile;
    }

    TomlFile file(const toml::table& root) const {
        TomlFile out;
        for (const auto& [name, node] : root) {
            if (name.str() == "models")
                for (const auto& [child, value] : as_table(node, "models"))
                    out.models.push_back(model(child, value));
            else if (name.str() == "profiles")
                for (const auto& [child, value] : as_table(node, "profiles"))
                    out.profiles.push_back(profile(child, value));
            else if (name.str() == "schema_version")
                check_version(node);
            else
                add(name, node, "", "", out.settings);
        }
        return out;
    }

    void check_version(const toml::node& node) const {
        if (node.value_exact<int64_t>() != 1)
            fail(node, fmt::format("schema_version is {}, but this build reads version 1",
                                   described(node)));
    }
};

}  // namespace

TomlFile parse_toml(const std::string& label, std::string_view text, const std::string& home) {
    if (const auto dots = std::ranges::count(text, '.'); dots > kMostDots)
        throw Error(fmt::format("{}: has {} dots, but at most {} are read; is this a hipfire.toml?",
                                label, dots, kMostDots),
                    Fault::usage);
    try {
        return Reader{label, home}.file(toml::parse(text));
    } catch (const toml::parse_error& error) {
        constexpr size_t kWholeSentence = 300;
        throw Error(fmt::format("{}:{}: not valid TOML: {}", label, error.source().begin.line,
                                one_line(error.description(), kWholeSentence)),
                    Fault::usage);
    }
}

TomlFile read_toml(const std::string& path, const std::string& home) {
    std::error_code fault;
    std::string text(kLargestFile + 1, '\0');
    if (fs::is_directory(path, fault)) fault = std::make_error_code(std::errc::is_a_directory);
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    in.read(text.data(), std::streamsize(text.size()));
    if (!fault && (in.bad() || !in.is_open()))
        fault.assign(errno ? errno : EIO, std::generic_category());
    if (fault)
        throw Error(fmt::format("{}: cannot be read: {}; give a hipfire.toml", one_line(path, 4096),
                                fault.message()),
                    Fault::usage);
    text.resize(size_t(in.gcount()));
    if (text.size() > kLargestFile)
        throw Error(fmt::format("{}: larger than {} bytes, the most a configuration may have", path,
                                kLargestFile),
                    Fault::usage);
    return parse_toml(path, text, home);
}

}  // namespace hf
