// Which source counts, for every row; where files, profiles and models come from.
#include "libcore/config/resolve.h"

#include <doctest/doctest.h>

#include <clocale>
#include <locale>

#include "tests/unit/config_support.h"

using namespace hf;
using namespace hf::test;

namespace {

/// Nobody listens.
const Log kSilent;

/// `key = text` said by a flag, a variable or a file; `literal` is the text as TOML.
Sources said_by(std::string_view kind, const Key& key, const std::string& text,
                const std::string& literal, const TempFolder& folder) {
    Sources sources = empty_sources();
    if (kind == "flag") sources.flags = {{std::string(key.path), text, std::string(key.flag)}};
    if (kind == "variable") sources.environment = {{std::string(key.variable), text}};
    if (kind == "file") sources.config_path = folder.write("hipfire.toml", toml_for(key, literal));
    return sources;
}

/// How errors name that source.
std::string spelled(std::string_view kind, const Key& key, const TempFolder& folder) {
    if (kind == "flag") return fmt::format("flag {}: ", key.flag);
    if (kind == "variable") return fmt::format("variable {}: ", key.variable);
    return (folder.path / "hipfire.toml").string() + ":2: ";
}

constexpr std::string_view kKinds[] = {"flag", "variable", "file"};

const Provenance& provenance(const Resolved& resolved, std::string_view path) {
    return *std::ranges::find(resolved.keys, find_key(path), &Provenance::key);
}

}  // namespace

TEST_CASE("resolve: with no source at all, everything is built in") {
    const Resolved resolved = resolve_config(empty_sources(), kSilent);
    CHECK(resolved.config == Config{});
    CHECK(resolved.file == "");
    REQUIRE(resolved.keys.size() == config_keys().size());
    for (size_t i = 0; i < resolved.keys.size(); ++i) {
        CHECK(resolved.keys[i].key == &config_keys()[i]);
        REQUIRE(resolved.keys[i].settings.size() == 1);
        CHECK(resolved.keys[i].settings[0].source == "built in");
    }
}

TEST_CASE("resolve: for every key and every set of sources, the highest source counts") {
    const TempFolder folder;
    for (const Key& key : config_keys())
        for (unsigned spoken = 0; spoken < 16; ++spoken) {  // bit 0: flag ... bit 3: file
            const bool overridden = spoken & 4;
            if (overridden && key.path == "run.model") continue;
            CAPTURE(key.path);
            CAPTURE(spoken);
            const std::vector<std::string> texts = good_texts(key);
            const auto text = [&](size_t i) { return texts[(i + 1) % texts.size()]; };
            const std::string path(key.path), flag(key.flag), variable(key.variable);

            Sources sources = empty_sources();
            std::string toml = "[models.small]\npath = \"small\"\n";
            std::vector<std::string> expected;
            if (spoken & 1) sources.flags.push_back({path, text(0), flag});
            if (spoken & 2) sources.environment.emplace_back(variable, text(1));
            if (overridden) toml += toml_for(key, toml_literal(key, text(2)), "models.small.");
            if (overridden) sources.flags.push_back({"run.model", "small", "-m"});
            if (spoken & 8) toml += toml_for(key, toml_literal(key, text(3)));
            for (size_t i = 0; i < 4; ++i)
                if (spoken & (1u << i)) expected.push_back(text(i));
            expected.emplace_back(key.preset);
            sources.config_path = folder.write("hipfire.toml", toml);

            const Resolved resolved = resolve_config(sources, kSilent);
            std::vector<std::string> found;
            for (const Setting& setting : provenance(resolved, path).settings)
                found.push_back(setting.text);
            CHECK(found == expected);
            Config config;
            if (overridden) config.run.model = folder.path / "small";
            CHECK(key.value.set(config, expected.front()));
            CHECK(resolved.config == config);
        }
}

TEST_CASE("resolve: each accepted text of every key means the same from every source") {
    const TempFolder folder;
    for (const Key& key : config_keys())
        for (const std::string& text : good_texts(key))
            for (std::string_view kind : kKinds) {
                CAPTURE(key.path);
                CAPTURE(text);
                CAPTURE(kind);
                Config config;
                CHECK(key.value.set(config, text));
                const Sources sources = said_by(kind, key, text, toml_literal(key, text), folder);
                CHECK(resolve_config(sources, kSilent).config == config);
            }
}

TEST_CASE("resolve: an empty text says nothing, from every source of every key") {
    const TempFolder folder;
    for (const Key& key : config_keys())
        for (std::string_view kind : kKinds) {
            CAPTURE(key.path);
            CAPTURE(kind);
            const Resolved resolved =
                resolve_config(said_by(kind, key, "", "\"\"", folder), kSilent);
            CHECK(resolved.config == Config{});
            CHECK(provenance(resolved, key.path).settings.size() == 1);
        }
}

TEST_CASE("resolve: garbage is refused for every key and source, even when a flag covers it") {
    const TempFolder folder;
    for (const Key& key : config_keys())
        for (const std::string& text : bad_texts(key))
            for (std::string_view kind : kKinds) {
                CAPTURE(key.path);
                CAPTURE(text);
                CAPTURE(kind);
                Sources sources = said_by(kind, key, text, toml_quoted(text), folder);
                sources.flags.push_back({std::string(key.path), std::string(key.preset), "--set"});
                const std::string error = usage_error([&] { resolve_config(sources, kSilent); });
                CAPTURE(error);
                CHECK(error.starts_with(spelled(kind, key, folder)));
                CHECK(contains(error, one_line(text)));
                CHECK(contains(error, key.path));
                CHECK(error.ends_with(accepted(key.value)));
            }
}

TEST_CASE("resolve: the last flag of a key counts, and --set is a flag") {
    Sources sources = empty_sources();
    sources.flags = {{"memory.kv_cache", "q8", "--kv"}, parse_set("memory.kv_cache=f32")};
    CHECK(resolve_config(sources, kSilent).config.memory.kv_cache == "f32");
    std::ranges::reverse(sources.flags);
    CHECK(resolve_config(sources, kSilent).config.memory.kv_cache == "q8");

    CHECK(parse_set("run.system=a=b").value == "a=b");
    CHECK(parse_set("run.system=").value == "");
    CHECK(contains(usage_error([] { parse_set("run.system"); }), "'run.system' has no '='"));
    sources.flags = {parse_set("memory.kv_cahce=q8")};
    CHECK(usage_error([&] { resolve_config(sources, kSilent); }) ==
          "flag --set memory.kv_cahce=q8: unknown key 'memory.kv_cahce'; "
          "the nearest is memory.kv_cache");
}

TEST_CASE("resolve: an unknown HIPFIRE_ variable is one warning with the nearest name") {
    Sources sources = empty_sources();
    sources.environment = {{"HIPFIRE_KVCACHE", "q8"}, {"HIPFIRE_", "x"},
                           {"HIPFIRE_EMPTY", ""},     {"OTHER", "x"},
                           {"HIPFIRE_VRAM_MB", "1"},  {"HIPFIRE_THREADS", "1"},
                           {"HIPFIRE_CONFIG", ""},    {"HIPFIRE_MAX_SEQ", "9"}};
    std::vector<std::string> lines;
    const Log log{[&](LogLevel level, std::string_view line) {
        CHECK(level == LogLevel::warn);
        lines.emplace_back(line);
    }};
    const Resolved resolved = resolve_config(sources, log);
    REQUIRE(lines.size() == 4);
    CHECK(lines[0] ==
          "variable HIPFIRE_KVCACHE is not known and is ignored; the nearest is HIPFIRE_KV_CACHE");
    CHECK(lines[1] == "variable HIPFIRE_ is not known and is ignored");
    CHECK(contains(lines[2], "the nearest is HIPFIRE_DEVICE_VRAM_MB"));
    CHECK(contains(lines[3], "the nearest is HIPFIRE_CPU_THREADS"));
    CHECK(resolved.config.memory.kv_cache == "f16");
    CHECK(resolved.config.memory.max_seq == 9);
}

TEST_CASE("resolve: the environment is copied entry by entry") {
    const char* const entries[] = {"A=1", "B=", "C=x=y", "without", nullptr};
    CHECK(read_environment(entries) == Environment{{"A", "1"}, {"B", ""}, {"C", "x=y"}});
    CHECK(read_environment(nullptr).empty());
}

TEST_CASE("resolve: the file is the first of flag, variable, working folder, XDG folder, home") {
    const TempFolder folder;
    const auto file = [&](const std::string& name, int threads) {
        return folder.write(name, fmt::format("[cpu]\nthreads = {}\n", threads));
    };
    const std::string by_flag = file("flag.toml", 1), by_variable = file("variable.toml", 2);
    const std::string by_folder = file("here/hipfire.toml", 3);
    const std::string by_xdg = file("xdg/hipfire/hipfire.toml", 4);
    const std::string by_home = file("home/.config/hipfire/hipfire.toml", 5);
    const std::string xdg = folder.path / "xdg", home = folder.path / "home";

    struct Row {
        const char* config;
        const char* variable;
        const char* working_folder;
        const char* xdg;
        const char* home;
        std::string found;
    };
    const std::string here = folder.path / "here";
    const char *F = by_flag.c_str(), *V = by_variable.c_str(), *W = here.c_str();
    const char *X = xdg.c_str(), *H = home.c_str(), *none = "", *nowhere = "/nonexistent";
    const Row rows[] = {
        {F, V, W, X, H, by_flag},
        {none, V, W, X, H, by_variable},
        {none, none, W, X, H, by_folder},
        {none, none, nowhere, X, H, by_xdg},
        {none, none, nowhere, none, H, by_home},
        {none, none, nowhere, nowhere, H, ""},
        {none, none, nowhere, "xdg", H, by_home},
        {none, none, nowhere, none, none, ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.found);
        Sources sources;
        sources.config_path = row.config;
        sources.environment = {
            {"HIPFIRE_CONFIG", row.variable}, {"XDG_CONFIG_HOME", row.xdg}, {"HOME", row.home}};
        sources.working_folder = row.working_folder;
        const Resolved resolved = resolve_config(sources, kSilent);
        CHECK(resolved.file == row.found);
        CHECK((resolved.config.cpu.threads == 0) == row.found.empty());
    }
}

TEST_CASE("resolve: a file that was asked for must be readable, and of sensible size") {
    const TempFolder folder;
    const std::string large = folder.write("large.toml", std::string((1 << 20) + 1, '\n'));
    const std::string full = folder.write("full.toml", std::string(1 << 20, '\n'));
    for (const std::string& path : {std::string("/nonexistent/x.toml"), folder.path.string(), large,
                                    std::string("/dev/zero")}) {
        CAPTURE(path);
        Sources sources = empty_sources();
        sources.config_path = path;
        CHECK(contains(usage_error([&] { resolve_config(sources, kSilent); }), path + ": "));
        sources.config_path.reset();
        sources.environment = {{"HIPFIRE_CONFIG", path}};
        CHECK(contains(usage_error([&] { resolve_config(sources, kSilent); }), path + ": "));
    }
    for (const std::string& path : {full, std::string("/dev/null")}) {
        Sources sources = empty_sources();
        sources.config_path = path;
        CHECK(resolve_config(sources, kSilent).config == Config{});
    }
}

TEST_CASE("resolve: a profile stands in the place of the file's own values") {
    const TempFolder folder;
    Sources sources = empty_sources();
    sources.config_path = folder.write("hipfire.toml",
                                       "[cpu]\nthreads = 3\n[memory]\nkv_cache = \"q8\"\n"
                                       "[profiles.bench.cpu]\nthreads = 5\n[profiles.empty]\n");
    CHECK(resolve_config(sources, kSilent).config.cpu.threads == 3);
    sources.profile = "bench";
    const Config bench = resolve_config(sources, kSilent).config;
    CHECK(bench.cpu.threads == 5);
    CHECK(bench.memory.kv_cache == "f16");
    const std::string explained = explain(resolve_config(sources, kSilent));
    CHECK(explained.find(", which the profile displaces") != explained.npos);
    sources.profile = "empty";
    CHECK(resolve_config(sources, kSilent).config == Config{});
    sources.profile = "bnech";
    CHECK(contains(usage_error([&] { resolve_config(sources, kSilent); }),
                   "no profile 'bnech' in " + *sources.config_path + "; it has bench, empty"));
    sources.config_path.reset();
    CHECK(contains(usage_error([&] { resolve_config(sources, kSilent); }),
                   "no configuration file was found, so there is no profile 'bnech'"));
}

TEST_CASE("resolve: a known name is its path with its overrides, anything else is a path") {
    const TempFolder folder;
    folder.write("models/apple/x", "");
    folder.write("models/small/x", "");
    folder.write("models/.hidden/x", "");
    folder.write("models/bundled/x", "");
    const std::string models = folder.path / "models";
    Sources sources = empty_sources();
    sources.environment = {{"HIPFIRE_MODELS_DIR", models}, {"HOME", "/home/x"}};
    sources.config_path =
        folder.write("etc/hipfire.toml",
                     "[run]\nmodel = \"../m\"\n"
                     "[models.small]\npath = \"s\"\n[models.small.cpu]\nthreads = 7\n"
                     "[models.\"b.1\"]\npath = \"/abs/b\"\n[models.tilde]\npath = \"~/t\"\n");
    struct Row {
        const char* given;
        std::string path;
        uint32_t threads;
    };
    const Row rows[] = {
        {"", folder.path / "m", 0}, {"small", folder.path / "etc/s", 7}, {"b.1", "/abs/b", 0},
        {"tilde", "/home/x/t", 0},  {"apple", models + "/apple", 0},     {"./small", "./small", 0},
        {"bundled", "", 0},         {"unknown", "unknown", 0},           {"~/t", "~/t", 0},
    };
    for (const Row& row : rows) {
        CAPTURE(row.given);
        sources.flags = {{"run.model", row.given, "-m"}};
        const Config config = resolve_config(sources, kSilent).config;
        CHECK(config.run.model == row.path);
        CHECK(config.cpu.threads == row.threads);
    }
    std::vector<std::string> names;
    for (const KnownModel& model : resolve_config(sources, kSilent).models)
        names.push_back(model.name);
    CHECK(names == std::vector<std::string>{"b.1", "small", "tilde", "apple"});

    sources.environment = {{"HIPFIRE_MODELS_DIR", "/nonexistent"}};
    CHECK(contains(usage_error([&] { resolve_config(sources, kSilent); }),
                   "variable HIPFIRE_MODELS_DIR: '/nonexistent' is not a folder"));
}

TEST_CASE("resolve: the model may be chosen by any source, and flags still count more") {
    const TempFolder folder;
    const std::string models = "[models.small]\npath = \"s\"\n[models.small.cpu]\nthreads = 7\n";
    Sources sources = empty_sources();
    sources.config_path = folder.write("hipfire.toml", "[run]\nmodel = \"small\"\n" + models);
    CHECK(resolve_config(sources, kSilent).config.cpu.threads == 7);
    sources.flags = {{"cpu.threads", "2", "--threads"}};
    CHECK(resolve_config(sources, kSilent).config.cpu.threads == 2);
    sources.flags = {{"run.model", "bundled", "-m"}};
    CHECK(resolve_config(sources, kSilent).config == Config{});
    sources = empty_sources();
    sources.config_path = folder.write("hipfire.toml", models);
    sources.environment = {{"HIPFIRE_RUN_MODEL", "small"}};
    CHECK(resolve_config(sources, kSilent).config.cpu.threads == 7);
}

TEST_CASE("resolve: numbers are read the same way in every locale") {
    struct Commas : std::numpunct<char> {
        char do_decimal_point() const override { return ','; }
        char do_thousands_sep() const override { return '.'; }
        std::string do_grouping() const override { return "\3"; }
    };
    const TempFolder folder;
    const Key& key = *find_key("sampling.temperature");
    const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Commas));
    bool is_german = false;
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"})
        is_german = is_german || std::setlocale(LC_ALL, name);
    if (!is_german)
        MESSAGE("no C locale with a decimal comma is installed; only the C++ one is set");
    for (std::string_view kind : kKinds) {
        const Resolved resolved =
            resolve_config(said_by(kind, key, "0.625", "0.625", folder), kSilent);
        CHECK(resolved.config.sampling.temperature == 0.625f);
        CHECK(provenance(resolved, key.path).settings[0].text == "0.625");
        CHECK(usage_error([&] {
                  resolve_config(said_by(kind, key, "0,625", "0,625", folder), kSilent);
              }) != "");
    }
    CHECK(accepted(find_key("memory.max_seq")->value) == "an integer from 1 to 16777216, or auto");
    std::locale::global(before);
    std::setlocale(LC_ALL, "C");
}

TEST_CASE("explain: every key stands in its line with value, source and what it overrode") {
    const TempFolder folder;
    Sources sources = empty_sources();
    sources.config_path = folder.write("hipfire.toml", "[memory]\nkv_cache = \"q8\"\n");
    sources.flags = {{"memory.kv_cache", "f32", "--kv"}, {"run.system", "two\nlines", "--system"}};
    const std::string text = explain(resolve_config(sources, kSilent));
    CAPTURE(text);
    CHECK(text.starts_with("file: " + *sources.config_path + "\n"));
    CHECK(size_t(std::ranges::count(text, '\n')) == config_keys().size() + 1);
    for (const Key& key : config_keys()) CHECK(contains(text, fmt::format("\n{} ", key.path)));
    const auto line = [](const char* key, const char* value, const char* source) {
        return fmt::format("\n{:27}  {:12}  {}", key, value, source);  // as wide as the widest
    };
    CHECK(contains(text, line("memory.kv_cache", "f32", "flag --kv      over q8 (") +
                             *sources.config_path + ":2), f16 (built in)\n"));
    CHECK(contains(text,
                   line("run.system", "two\\x0alines", "flag --system  over none (built in)\n")));
    CHECK(contains(text, line("cpu.threads", "0", "built in\n")));
    CHECK(explain(resolve_config(empty_sources(), kSilent)).starts_with("file: none\n"));
}
