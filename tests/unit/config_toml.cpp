// hipfire.toml as a hostile file: what is refused, and in which line.
#include "libcore/config/toml_file.h"

#include <doctest/doctest.h>

#include "tests/unit/config_support.h"

using namespace hf;
using namespace hf::test;

namespace {

/// The text is copied to a buffer of its exact size, so that a sanitizer sees reads behind it.
TomlFile parse(const std::string& text) {
    const std::vector<char> exact(text.begin(), text.end());
    return parse_toml("dir/x.toml", {exact.data(), exact.size()}, "");
}

}  // namespace

TEST_CASE("toml: what is wrong is named with file, line and key") {
    struct Row {
        const char* text;
        const char* error;
    };
    const Row rows[] = {
        {"\n\n[memory]\nkv_cahce = 1\n",
         "4: unknown key 'memory.kv_cahce'; the nearest is memory.kv_cache"},
        {"[memroy]\nkv_cache = 1", "1: unknown key 'memroy'; the nearest is memory"},
        {"\nkv_cache = \"q8\"", "2: unknown key 'kv_cache'; the nearest is memory.kv_cache"},
        {"memory = 5", "1: 'memory' must be a table, but it is the integer 5"},
        {"[memory]\nfoo.bar = 1", "2: unknown key 'memory.foo'"},
        {"\n\"memory.kv_cache\" = \"q8\"",
         "2: unknown key '\"memory.kv_cache\"'; the nearest is memory.kv_cache"},
        {"[memory.kv_cache]\nx = 1",
         "1: a table is not a value of memory.kv_cache, which takes f16, f32 or q8"},
        {"[memory]\nkv_cache = 8", "2: the integer 8 is not a value of memory.kv_cache, "},
        {"[run]\nmax_tokens = \"512\"", "2: the text 512 is not a value of run.max_tokens, "},
        {"[run]\nmax_tokens = 0", "2: '0' is not a value of run.max_tokens, "},
        {"[run]\nmax_tokens = 1.0", "2: the number 1 is not a value of run.max_tokens, "},
        {"[sampling]\ntop_p = nan", "2: 'nan' is not a value of sampling.top_p, "},
        {"[sampling]\ntop_p = inf", "2: 'inf' is not a value of sampling.top_p, "},
        {"[run]\nseed = 9223372036854775808", "2: not valid TOML: "},
        {"[run]\nsystem = 2020-01-01",
         "2: a date is not a value of run.system, which takes text, or none"},
        {"[run\n", "1: not valid TOML: "},
        {"[run]\nseed = 1\nseed = 2\n", "3: not valid TOML: "},
        {"schema_version = 2",
         "1: schema_version is the integer 2, but this build reads version 1"},
        {"\nschema_version = \"1\"", "2: schema_version is the text 1, "},
        {"schema_version = 1.0", "1: schema_version is the number 1, "},
        {"models = 1", "1: 'models' must be a table, but it is the integer 1"},
        {"[models]\nsmall = \"p\"", "2: 'models.small' must be a table, but it is the text p"},
        {"[models.small]\n", "1: 'models.small' has no path; "},
        {"[models.small]\npath = 1",
         "2: 'models.small.path' must be a path, but it is the integer 1"},
        {"[models.small]\npath = \"\"", "2: 'models.small.path' must be a path, "},
        {"[models.small]\npath = \"a\\u0000b\"",
         "2: 'models.small.path' must be a path, but it is the text a\\x00b"},
        {"[models.bundled]\npath = \"p\"",
         "1: 'models.bundled' is the model that comes with hipfire"},
        {"[models.small]\npath = \"p\"\n[models.small.run]\nmodel = \"x\"",
         "1: 'models.small' cannot set run.model"},
        {"[models.small]\npath = \"p\"\ntemperature = 1",
         "3: unknown key 'models.small.temperature'; the nearest is sampling.temperature"},
        {"[models.qwen3.5]\npath = \"p\"",
         "1: unknown key 'models.qwen3.5'; a name with a dot is written in quotes"},
        {"profiles = []", "1: 'profiles' must be a table, but it is an array"},
        {"[profiles]\na = 1", "2: 'profiles.a' must be a table, but it is the integer 1"},
        {"[profiles.a.cpu]\nthreads = -1",
         "2: '-1' is not a value of cpu.threads, which takes an integer from 0 to 1024"},
        {"[profiles.a.cpu]\nthread = 1",
         "2: unknown key 'profiles.a.cpu.thread'; the nearest is cpu.threads"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        const std::string error = usage_error([&] { parse(row.text); });
        CAPTURE(error);
        CHECK(error.starts_with(std::string("dir/x.toml:") + row.error));
    }
}

TEST_CASE("toml: every key refuses every type that is not its own, in every table") {
    const struct {
        const char* literal;
        std::vector<Kind> fits;
    } types[] = {
        {"[1]", {}},
        {"{ x = 1 }", {}},
        {"2020-01-01", {}},
        {"12:00:00", {}},
        {"2020-01-01T12:00:00Z", {}},
        {"false", {Kind::word}},
        {"\"some text\"", {Kind::text, Kind::path}},
        {"1", {Kind::integer, Kind::number}},
        {"1.0", {Kind::number}},
    };
    for (const Key& key : config_keys())
        for (const auto& type : types)
            for (const std::string owner : {"", "models.m.", "profiles.p."}) {
                const std::string head = owner == "models.m." ? "models.m.path = \"p\"\n" : "";
                const std::string text = head + toml_for(key, type.literal, owner);
                CAPTURE(text);
                const bool is_yes = std::string_view(type.literal) == "1" &&
                                    std::ranges::count(key.value.words, "true") > 0;
                const bool fits =
                    is_yes || std::ranges::find(type.fits, key.value.kind) != type.fits.end();
                const bool is_kept_out = key.path == "run.model" && owner == "models.m.";
                const std::string error = usage_error([&] { parse(text); });
                CAPTURE(error);
                if (key.value.kind != Kind::word || !fits)
                    CHECK((error == "") == (fits && !is_kept_out));
                if (!fits)
                    CHECK(contains(error, fmt::format(" is not a value of {}, which takes {}",
                                                      key.path, accepted(key.value))));
            }
}

TEST_CASE(
    "toml: a file that cannot be read is refused with the reason, a faulty one in a sentence") {
    const TempFolder folder;
    std::filesystem::create_symlink("loop", folder.path / "loop");
    const std::pair<std::string, const char*> rows[] = {
        {folder.path / "none", "No such file or directory"},
        {folder.path, "Is a directory"},
        {folder.path / "loop", "Too many levels of symbolic links"},
        {folder.write("file", "x") + "/y", "Not a directory"},
    };
    for (const auto& [path, reason] : rows)
        CHECK(usage_error([&] { read_toml(path, ""); }) ==
              path + ": cannot be read: " + reason + "; give a hipfire.toml");
    const std::string twice = usage_error([] { parse("[run]\nseed = 1\nseed = 2\n"); });
    CHECK(contains(twice, "cannot redefine existing integer"));
    CHECK_FALSE(contains(twice, "..."));
}

TEST_CASE("toml: a boolean is good where its word is one") {
    CHECK(parse("[run]\nthinking = false").settings.at(0).text == "false");
    CHECK(usage_error([] { parse("[memory]\nkv_cache = true"); }) ==
          "dir/x.toml:2: 'true' is not a value of memory.kv_cache, which takes f16, f32 or q8");
}

TEST_CASE("toml: a well-formed file gives settings, models and profiles") {
    const TomlFile file = parse(
        "schema_version = 1\n[run]\nmodel = \"./m\"\nsystem = \"\"\n"
        "[models.a]\npath = \"p/../q\"\nsampling.top_k = 5\n[profiles.b.run]\nmodel = \"name\"\n");
    REQUIRE(file.settings.size() == 1);
    CHECK(file.settings[0].text == "dir/m");
    CHECK(file.settings[0].source == "dir/x.toml:3");
    REQUIRE(file.models.size() == 1);
    CHECK(file.models[0].path == "dir/q");
    CHECK(file.models[0].source == "dir/x.toml:5");
    CHECK(file.models[0].overrides.at(0).source == "dir/x.toml:7");
    REQUIRE(file.profiles.size() == 1);
    CHECK(file.profiles[0].settings.at(0).text == "name");
    CHECK(parse("").settings.empty());
}

TEST_CASE("toml: a file cut short anywhere is read or refused, never read past its end") {
    const std::string text =
        "schema_version = 1\n[run]\nsystem = \"\"\"a\\u00e9\nb\"\"\"\nseed = 12\n"
        "[models.\"a.b\"]\npath = 'p'\nsampling = { top_p = 0.5, top_k = 3 }\n";
    for (size_t size = 0; size <= text.size(); ++size) {
        CAPTURE(size);
        const std::string error = usage_error([&] { parse(text.substr(0, size)); });
        CHECK((error == "" || error.starts_with("dir/x.toml:")));
    }
}

TEST_CASE("toml: depth and size do not exhaust the stack") {
    struct Row {
        std::string_view before, part, after;
    };
    const Row rows[] = {
        {"", "a.", "a=1"}, {"[", "a.", "a]"}, {"[", "''.", "a]"}, {"", "a={", ""}, {"a=", "[", ""}};
    for (const Row& row : rows)
        for (const size_t count : {100, 4000, 300000}) {
            CAPTURE(row.part);
            CAPTURE(count);
            std::string text(row.before);
            for (size_t i = 0; i < count; ++i) text += row.part;
            text += row.after;
            CHECK(usage_error([&] { parse(text); }).starts_with("dir/x.toml:"));
        }
}
