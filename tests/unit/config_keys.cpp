// Everything that is true of each row of the table of keys, and of the documents that list it.
#include <doctest/doctest.h>

#include <set>

#include "libcore/config/keys.h"
#include "libcore/config/nearest.h"
#include "libcore/config/resolve.h"
#include "tests/support/data.h"
#include "tests/unit/config_support.h"

using namespace hf;
using namespace hf::test;

namespace {

const std::string kRoot = HF_TEST_DATA "/../../";

/// "-m, --model".
std::string flags_of(const Key& key) {
    const size_t comma = key.flag.find(',');
    if (comma == key.flag.npos) return std::string(key.flag);
    return fmt::format("{}, {}", key.flag.substr(0, comma), key.flag.substr(comma + 1));
}

/// What stands in the table: a key without a flag has --set.
std::string flag_column(const Key& key) {
    return key.flag.empty() ? "" : fmt::format("`{}`", flags_of(key));
}

/// The part of hipfire.toml.example that lists the keys.
std::string example_keys() {
    std::string out, group;
    for (const Key& key : config_keys()) {
        if (group != group_of(key)) out += fmt::format("\n[{}]\n", group = group_of(key));
        out += fmt::format("# {}.\n# Takes {}. Also {}{}{}.\n#{} = {}\n", key.meaning,
                           accepted(key.value), flags_of(key), key.flag.empty() ? "" : " and ",
                           key.variable, name_of(key), toml_literal(key, key.preset));
    }
    return out;
}

/// The table of docs/configuration.md.
std::string documented_keys() {
    std::string out =
        "| key | flag | variable | default | takes | meaning |\n|---|---|---|---|---|---|\n";
    for (const Key& key : config_keys())
        out += fmt::format("| `{}` | {} | `{}` | `{}` | {} | {} |\n", key.path, flag_column(key),
                           key.variable, key.preset, accepted(key.value), key.meaning);
    return out;
}

/// Lines that start with `start`.
size_t count_lines(const std::string& text, const std::string& start) {
    size_t count = text.starts_with(start);
    for (size_t at = 0; (at = text.find("\n" + start, at)) != text.npos; ++at) ++count;
    return count;
}

}  // namespace

TEST_CASE("keys: paths, variables and flags are unique and follow from each other") {
    const std::pair<std::string_view, std::string_view> historical[] = {
        {"experimental.graph.forward", "HIPFIRE_GRAPH"},
        {"speculation.mode", "HIPFIRE_SPECULATION"},
        {"developer.cpu_exec_trace", "HIPFIRE_CPU_EXEC_TRACE"},
    };
    std::set<std::string_view> seen;
    for (const Key& key : config_keys()) {
        CAPTURE(key.path);
        for (std::string_view name : {key.path, key.variable, key.flag})
            CHECK((name.empty() || seen.insert(name).second));
        std::string variable = "HIPFIRE_";
        for (const char c : key.path.starts_with("memory.") ? name_of(key) : std::string(key.path))
            variable += c == '.' ? '_' : char(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
        for (const auto& [path, name] : historical)
            if (path == key.path) variable = name;
        CHECK(key.variable == variable);
        CHECK(find_key(key.path) == &key);
        CHECK(!key.meaning.empty());
    }
    CHECK(find_key("memory") == nullptr);
    CHECK(find_key("") == nullptr);
}

TEST_CASE(
    "keys: another name of a key stands for it in a file and as a variable, and counts less") {
    for (const KeyAlias& alias : key_aliases()) {
        CAPTURE(alias.path);
        const Key* key = find_key(alias.of);
        REQUIRE(key != nullptr);
        CHECK(find_key(alias.path) == key);
        const std::string text = good_texts(*key).back();
        Config config;
        CHECK(key->value.set(config, text));
        CHECK(parse_toml("t", fmt::format("{} = {}", alias.path, toml_literal(*key, text)), "")
                  .settings.at(0)
                  .key == key);
        Sources sources = empty_sources();
        sources.environment = {{std::string(alias.variable), text}};
        CHECK(resolve_config(sources, {}).config == config);
        sources.environment.emplace_back(key->variable, key->preset);
        CHECK(resolve_config(sources, {}).config == Config{});
        sources.environment[0].second = "garbage";
        CHECK(contains(usage_error([&] { resolve_config(sources, {}); }), alias.variable));
    }
}

namespace {

Config config_after(std::string_view path, std::string_view text) {
    Config config;
    CHECK(find_key(path)->value.set(config, text));
    return config;
}

}  // namespace

TEST_CASE("keys: a number of layers, all that fit, or nothing said") {
    const struct {
        const char* text;
        bool is_taken;
        std::optional<int32_t> budget;
    } rows[] = {
        {"unset", true, {}},
        {"0", true, 0},
        {"12", true, 12},
        {"1000000", true, 1000000},
        {"auto", true, kAutoLayers},
        {"-1", true, kAutoLayers},
        {"-2", false, {}},
        {"abc", false, {}},
        {"3.5", false, {}},
        {"12x", false, {}},
        {"1000001", false, {}},
        {"", false, {}},
    };
    for (const auto& row : rows) {
        CAPTURE(row.text);
        Config config;
        CHECK(find_key("memory.gpu_layer_budget")->value.set(config, row.text) == row.is_taken);
        CHECK(config.memory.gpu_layer_budget == row.budget);
    }
}

TEST_CASE("keys: a word that is another name of one before it is explained") {
    CHECK(config_after("memory.offload_exec", "passback").memory.offload_exec == "split");
    for (const Key& key : config_keys()) {
        if (key.value.kind != Kind::word) continue;
        const auto& words = key.value.words;
        for (size_t i = 0; i < words.size(); ++i)
            for (size_t j = 0; j < i; ++j)
                if (config_after(key.path, words[i]) == config_after(key.path, words[j]))
                    CHECK_MESSAGE(contains(key.meaning, words[i]), key.path);
    }
}

TEST_CASE("keys: 1 and 0 are true and false wherever those are taken, and nothing elsewhere") {
    for (const Key& key : config_keys()) {
        if (key.value.kind != Kind::word) continue;
        CAPTURE(std::string(key.path));
        const bool is_boolean = std::ranges::count(key.value.words, "true") == 1;
        CHECK(is_boolean == (std::ranges::count(key.value.words, "false") == 1));
        for (const auto& [digit, word] : {std::pair("1", "true"), std::pair("0", "false")}) {
            const std::string text = toml_for(key, digit);
            if (is_boolean) {
                CHECK(config_after(key.path, digit) == config_after(key.path, word));
                CHECK(parse_toml("t", text, "").settings.at(0).key == &key);
            } else {
                Config config;
                CHECK_FALSE(key.value.set(config, digit));
                CHECK(usage_error([&] { parse_toml("t", text, ""); }) != "");
            }
        }
        CHECK(usage_error([&] { parse_toml("t", toml_for(key, "2"), ""); }) != "");
    }
}

TEST_CASE("keys: the built-in values are the fields' own") {
    for (const Key& key : config_keys()) {
        CAPTURE(key.path);
        Config config;
        CHECK(key.value.set(config, key.preset));
        CHECK(config == Config{});
    }
}

TEST_CASE("keys: a text that is no value of a key changes nothing") {
    for (const Key& key : config_keys())
        for (const std::string& text : bad_texts(key)) {
            CAPTURE(key.path);
            CAPTURE(text);
            Config config;
            for (const std::string& good : good_texts(key)) CHECK(key.value.set(config, good));
            const Config before = config;
            CHECK_FALSE(key.value.set(config, text));
            CHECK(config == before);
        }
}

TEST_CASE("keys: each row writes a field that no other row writes") {
    for (const Key& key : config_keys())
        for (const Key& other : config_keys()) {
            CAPTURE(key.path);
            CAPTURE(other.path);
            Config config;
            CHECK(key.value.set(config, good_texts(key).back()));
            const Config changed = config;
            CHECK(changed != Config{});
            CHECK(other.value.set(config, other.preset));
            CHECK((config == changed) == (&key != &other));
        }
}

TEST_CASE("nearest: the fewest edits, of which the longer of two names allows a third") {
    const struct {
        const char *wrong, *found;
    } rows[] = {
        {"--tmep", "--temp"},
        {"--tem", "--temp"},
        {"--temperature", "--temp"},
        {"--kv-cache", "--kv"},
        {"--kv", "--kv"},
        {"--kvetch", ""},
        {"--max_tokens", "--max-tokens"},
        {"--maxtokens", "--max-tokens"},
        {"--token", ""},
        {"--max-t", "--max-tokens"},
        {"--x", ""},
        {"", ""},
        {"--", ""},
        {"temp", "--temp"},
        {"--tokenizer-path", ""},
    };
    const std::string_view known[] = {"--temp", "--kv", "--max-tokens", "--top-k"};
    for (const auto& row : rows) {
        CAPTURE(std::string(row.wrong));
        CHECK(nearest(row.wrong, known, "--") == row.found);
    }
    CHECK(nearest_words("x") == "; the nearest is x");
    CHECK(nearest_words("") == "");
}

TEST_CASE("keys: the nearest name is found by its group, its name or both, or not at all") {
    CHECK(nearest_key("memory.kv_cahce") == "memory.kv_cache");
    CHECK(nearest_key("sampling.temprature") == "sampling.temperature");
    CHECK(nearest_key("memory.max_sequence") == "memory.max_seq");
    CHECK(nearest_key("thread") == "cpu.threads");
    CHECK(nearest_key("memory.threads") == "cpu.threads");
    CHECK(nearest_key("sampling") == "sampling");
    CHECK(nearest_key("sampeling") == "sampling");
    for (const std::string wrong : {"", ".", "memory.", "memory.foo", "colour", "a.b.c"})
        CHECK(nearest_key(wrong) == "");
    CHECK(nearest_key(std::string(1 << 20, 'x')) == "");
    for (const Key& key : config_keys()) {
        CHECK(nearest_key(key.path) == key.path);
        CHECK(nearest_key(key.path.substr(1)) == key.path);
    }
}

TEST_CASE("keys: text from outside becomes one short line") {
    CHECK(one_line("plain") == "plain");
    CHECK(one_line("a\nb\x1B[0m\x7F") == "a\\x0ab\\x1b[0m\\x7f");
    CHECK(one_line(std::string(59, 'a') + "\xC3\xA9z") == std::string(59, 'a') + "\xC3\xA9...");
    CHECK(one_line(std::string(1000, '\x80')).size() < 100);
}

TEST_CASE("hipfire.toml.example lists the keys of the table, and no others") {
    const std::string example = read_file(kRoot + "hipfire.toml.example");
    const std::string expected = example_keys();
    INFO("the keys should read:\n" << expected);
    CHECK(contains(example, expected));
    size_t key_lines = 0;
    for (char c = 'a'; c <= 'z'; ++c) key_lines += count_lines(example, std::string("#") + c);
    CHECK(key_lines == config_keys().size());
}

TEST_CASE("hipfire.toml.example with all keys uncommented is the built-in configuration") {
    std::string example = read_file(kRoot + "hipfire.toml.example");
    for (size_t at = 0; (at = example.find("\n#", at)) != example.npos; ++at)
        if (example[at + 2] != ' ') example.erase(at + 1, 1);
    const TomlFile file = parse_toml("example", example, "");
    CHECK(file.settings.size() == config_keys().size());
    Config config;
    for (const Setting& setting : file.settings) {
        CHECK(setting.text == setting.key->preset);
        CHECK(setting.key->value.set(config, setting.text));
    }
    CHECK(config == Config{});
}

TEST_CASE("docs/configuration.md lists the keys of the table, and no others") {
    const std::string page = read_file(kRoot + "docs/configuration.md");
    const std::string expected = documented_keys();
    INFO("the table should read:\n" << expected);
    CHECK(contains(page, expected));
    CHECK(count_lines(page, "| `") == config_keys().size());
}
