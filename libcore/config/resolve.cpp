#include "libcore/config/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>

#include "libcore/base/error.h"
#include "libcore/config/nearest.h"

namespace hf {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVariablePrefix = "HIPFIRE_";
constexpr std::string_view kOtherVariables[] = {
    // known, but not values of a key
    "HIPFIRE_CONFIG",         // the file
    kModelsFolder,            // a folder of models, known by their file names
    "HIPFIRE_TEST_DATA_DIR",  // large fixtures; read by the tests only
};

/// The known variable that is near to a name; empty: none is. Who leaves the group out names the
/// key: MAX_TOKENS is RUN_MAX_TOKENS.
std::string_view nearest_variable(std::string_view wrong,
                                  const std::vector<std::string_view>& known) {
    std::vector<std::string> short_names;
    for (const Key& key : config_keys()) {
        short_names.emplace_back(kVariablePrefix);
        for (const char c : key.path.substr(key.path.rfind('.') + 1))
            short_names.back() += c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
    }
    std::vector<std::string_view> names = known;
    names.insert(names.end(), short_names.begin(), short_names.end());
    const std::string_view found = nearest(wrong, names, kVariablePrefix);
    if (found.empty()) return found;
    const auto at = size_t(std::ranges::find(names, found) - names.begin());
    return at < known.size() ? known[at] : config_keys()[at - known.size()].variable;
}

void warn_of_unknown_variables(const Environment& environment, const Log& log) {
    std::vector<std::string_view> known(std::begin(kOtherVariables), std::end(kOtherVariables));
    for (const Key& key : config_keys()) known.push_back(key.variable);
    for (const KeyAlias& alias : key_aliases()) known.push_back(alias.variable);
    for (const auto& [name, value] : environment) {
        if (!name.starts_with(kVariablePrefix) || value.empty()) continue;
        if (std::ranges::find(known, name) != known.end()) continue;
        log.warn(fmt::format("variable {} is not known and is ignored{}", one_line(name),
                             nearest_words(nearest_variable(name, known))));
    }
}

std::string find_file(const Sources& sources) {
    if (sources.config_path && !sources.config_path->empty()) return *sources.config_path;
    if (const std::string path = variable(sources.environment, "HIPFIRE_CONFIG"); !path.empty())
        return path;
    fs::path folder = variable(sources.environment, "XDG_CONFIG_HOME");
    const std::string home = variable(sources.environment, "HOME");
    if (!folder.is_absolute() && !home.empty()) folder = fs::path(home) / ".config";
    std::vector<fs::path> candidates = {fs::path(sources.working_folder) / "hipfire.toml"};
    if (folder.is_absolute()) candidates.push_back(folder / "hipfire" / "hipfire.toml");
    std::error_code unreachable;  // counts as absent
    for (const fs::path& path : candidates)
        if (fs::exists(path, unreachable)) return path;
    return {};
}

/// What one kind of source says. Of several settings of one key the first counts.
using Layer = std::vector<Setting>;

Layer flag_layer(const std::vector<FlagValue>& flags) {
    Layer layer;
    for (const FlagValue& flag : flags) {
        const Key* key = find_key(flag.key);
        if (!key)
            throw Error(fmt::format("flag {}: unknown key '{}'{}", one_line(flag.spelled),
                                    one_line(flag.key), nearest_words(nearest_key(flag.key))),
                        Fault::usage);
        if (!flag.value.empty())
            layer.push_back(checked_setting(*key, flag.value, "flag " + one_line(flag.spelled)));
    }
    std::ranges::reverse(layer);  // the last one counts
    return layer;
}

Layer variable_layer(const Environment& environment) {
    Layer layer;
    for (const Key& key : config_keys())
        if (const std::string value = variable(environment, key.variable); !value.empty())
            layer.push_back(checked_setting(key, value, fmt::format("variable {}", key.variable)));
    for (const KeyAlias& alias : key_aliases())
        if (const std::string value = variable(environment, alias.variable); !value.empty())
            layer.push_back(checked_setting(*find_key(alias.path), value,
                                            fmt::format("variable {}", alias.variable)));
    return layer;
}

Layer file_layer(const TomlFile& file, const Sources& sources, const std::string& path) {
    if (!sources.profile || sources.profile->empty()) return file.settings;
    for (const Profile& profile : file.profiles)
        if (profile.name == *sources.profile) return profile.settings;
    if (path.empty())
        throw Error(
            fmt::format("flag --profile-config: no configuration file was found, so there is "
                        "no profile '{}'",
                        one_line(*sources.profile)),
            Fault::usage);
    std::string names;
    for (const Profile& profile : file.profiles)
        names += (names.empty() ? "" : ", ") + profile.name;
    throw Error(
        fmt::format("flag --profile-config: there is no profile '{}' in {}; it has {}",
                    one_line(*sources.profile), path, names.empty() ? "none" : one_line(names)),
        Fault::usage);
}

Layer built_in_layer() {
    Layer layer;
    for (const Key& key : config_keys())
        layer.push_back(checked_setting(key, key.preset, "built in"));
    return layer;
}

void add_models_of(const std::string& folder, std::vector<KnownModel>& models) {
    std::vector<KnownModel> found;
    std::error_code failure;
    for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
         entry.increment(failure)) {
        const std::string name = entry->path().filename();
        const bool is_named = std::ranges::find(models, name, &KnownModel::name) != models.end();
        if (!name.starts_with('.') && name != find_key("run.model")->preset && !is_named)
            found.push_back({name, entry->path(), std::string(kModelsFolder), {}});
    }
    if (failure)
        throw Error(
            fmt::format("variable HIPFIRE_MODELS_DIR: '{}' is not a folder that can be read: {}",
                        one_line(folder), failure.message()),
            Fault::usage);
    std::ranges::sort(found, {}, &KnownModel::name);
    models.insert(models.end(), found.begin(), found.end());
}

/// What all layers say about one key, highest first.
std::vector<Setting> gather(std::span<const Layer> layers, const Key& key) {
    std::vector<Setting> out;
    for (const Layer& layer : layers)
        std::ranges::copy_if(layer, std::back_inserter(out),
                             [&](const Setting& setting) { return setting.key == &key; });
    return out;
}

/// Null: the text is a path.
const KnownModel* find_model(const std::vector<KnownModel>& models, const std::string& text) {
    const auto found = std::ranges::find(models, text, &KnownModel::name);
    return found == models.end() ? nullptr : &*found;
}

}  // namespace

FlagValue parse_set(std::string_view assignment) {
    const size_t equals = assignment.find('=');
    if (equals == assignment.npos)
        throw Error(
            fmt::format("flag --set: '{}' has no '='; write --set key=value", one_line(assignment)),
            Fault::usage);
    return {std::string(assignment.substr(0, equals)), std::string(assignment.substr(equals + 1)),
            "--set " + std::string(assignment)};
}

std::string variable(const Environment& environment, std::string_view name) {
    const auto found = std::ranges::find(environment, name, &Environment::value_type::first);
    return found == environment.end() ? "" : found->second;
}

Environment read_environment(const char* const* entries) {
    Environment out;
    for (; entries && *entries; ++entries) {
        const std::string_view entry = *entries;
        const size_t equals = entry.find('=');
        if (equals != entry.npos)
            out.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
    }
    return out;
}

Resolved resolve_config(const Sources& sources, const Log& log) {
    warn_of_unknown_variables(sources.environment, log);
    Resolved out;
    TomlFile file;
    out.file = find_file(sources);
    if (!out.file.empty()) file = read_toml(out.file, variable(sources.environment, "HOME"));
    out.models = file.models;
    out.models_folder = variable(sources.environment, kModelsFolder);
    if (!out.models_folder.empty()) add_models_of(out.models_folder, out.models);

    std::array<Layer, 5> layers = {flag_layer(sources.flags), variable_layer(sources.environment),
                                   Layer{}, file_layer(file, sources, out.file), built_in_layer()};
    const bool has_profile = sources.profile && !sources.profile->empty();
    const Layer displaced = has_profile ? file.settings : Layer{};
    const std::string chosen = gather(layers, *find_key("run.model")).front().text;
    const KnownModel* model = find_model(out.models, chosen);
    if (model) layers[2] = model->overrides;

    for (const Key& key : config_keys()) {
        out.keys.push_back({&key, gather(layers, key), gather({&displaced, 1}, key)});
        const bool is_set = key.value.set(out.config, out.keys.back().settings.front().text);
        HF_ASSERT(is_set);
    }
    if (model) out.config.run.model = model->path;
    return out;
}

std::string explain(const Resolved& resolved) {
    size_t path_width = 0, value_width = 0, source_width = 0;
    for (const auto& [key, settings, displaced] : resolved.keys) {
        path_width = std::max(path_width, key->path.size());
        value_width = std::max(value_width, one_line(settings.front().text).size());
        source_width = std::max(source_width, settings.front().source.size());
    }
    std::string out = fmt::format("file: {}\n", resolved.file.empty() ? "none" : resolved.file);
    for (const auto& [key, settings, displaced] : resolved.keys) {
        std::string over;
        for (size_t i = 1; i < settings.size(); ++i)
            over += fmt::format("{}{} ({})", i == 1 ? "  over " : ", ", one_line(settings[i].text),
                                settings[i].source);
        for (const Setting& s : displaced)
            over += fmt::format("  without {} ({}), which the profile displaces", one_line(s.text),
                                s.source);
        out += fmt::format("{:{}}  {:{}}  {:{}}{}\n", key->path, path_width,
                           one_line(settings.front().text), value_width, settings.front().source,
                           over.empty() ? 0 : source_width, over);
    }
    return out;
}

}  // namespace hf
