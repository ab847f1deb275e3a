// What all tools say about themselves: --help, man pages, shell completion, --version, --list.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "tests/support/data.h"
#include "tests/tools/process.h"
#include "tests/tools/texts.h"
#include "tests/unit/temp_folder.h"
#include "tools/progress.h"

using namespace hf::test;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kTools = {HF_RUN, HF_INSPECT, HF_QUANTIZE, HF_CROSSCHECK};

std::string said(const std::string& tool, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), tool);
    const Outcome run = run_process(arguments);
    CAPTURE(tool);
    CHECK(run.code == 0);
    CHECK(run.err.empty());
    return run.out;
}

/// The flags that a tool's help names: "-m", "--model".
std::set<std::string> flags_of_help(const std::string& tool) {
    std::set<std::string> flags;
    for (const std::string& line : lines_of(said(tool, {"--help"}))) {
        if (!line.starts_with("  -")) continue;
        std::istringstream names(line.substr(2, line.find(' ', 2) - 2));
        for (std::string name; std::getline(names, name, ',');) flags.insert(name);
    }
    return flags;
}

/// A script of bash that completes the last of some words as bash would.
std::vector<std::string> completed(const std::string& tool, const std::string& words,
                                   const std::string& folder = "/") {
    const std::string name = fs::path(tool).filename();
    std::string function = "_" + name;
    std::replace(function.begin(), function.end(), '-', '_');
    const std::string script = "source <(" + tool + " --completion bash); COMP_WORDS=(" + name +
                               " " + words + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); " +
                               function +
                               "; [[ $COMPREPLY ]] && printf '%s\\n' \"${COMPREPLY[@]}\"";
    return lines_of(run_process({"/bin/bash", "-uc", script},
                                {.environment = {"PATH=/usr/bin:/bin"}, .folder = folder})
                        .out);
}

/// False when there is no such program here: the log says what was not checked.
bool is_there(const std::string& program) {
    static std::set<std::string> said_so;
    for (const char* folder : {"/bin/", "/usr/bin/"})
        if (fs::exists(folder + program)) return true;
    if (said_so.insert(program).second) MESSAGE("skipped: " << program << " is not installed");
    return false;
}

}  // namespace

TEST_CASE("tools: man page and completions name every flag of --help, and no others") {
    for (const std::string& tool : kTools) {
        CAPTURE(tool);
        const std::set<std::string> flags = flags_of_help(tool);
        CHECK(flags.size() > 15);
        const std::string man = said(tool, {"--man"});
        const std::string zsh = said(tool, {"--completion", "zsh"});
        const auto bash = completed(tool, "-");
        CHECK(std::set<std::string>(bash.begin(), bash.end()) == flags);
        for (const std::string& flag : flags) {
            CAPTURE(flag);
            std::string escaped;
            for (const char c : flag) escaped += c == '-' ? "\\-" : std::string(1, c);
            CHECK((contains(man, "\\fB" + escaped + ",") ||
                   contains(man, "\\fB" + escaped + "\\fR") ||
                   contains(man, ", " + escaped + "\\fR")));
            CHECK((contains(zsh, "'*" + flag + "[") || contains(zsh, "'*" + flag + "=[") ||
                   contains(zsh, "'*" + flag + "+[")));
        }
    }
    const Outcome fish = run_process({HF_RUN, "--completion", "fish"});
    CHECK(fish.code == 2);
    CHECK(contains(fish.err, "bash and zsh"));
}

TEST_CASE("tools: bash completes flags, the words that settings take, and files") {
    using Words = std::vector<std::string>;
    CHECK(completed(HF_RUN, "--max") == Words{"--max-tokens"});
    CHECK(completed(HF_RUN, "hello --kv ''") == Words{"f16", "f32", "q8"});
    CHECK(completed(HF_RUN, "--kv q") == Words{"q8"});
    CHECK(completed(HF_RUN, "--kv = f3") == Words{"f32"});  // as bash takes --kv=f3 apart
    CHECK(completed(HF_RUN, "--kv =") == Words{"f16", "f32", "q8"});
    CHECK(completed(HF_RUN, "--seed ''").empty());
    const TempFolder folder;
    folder.write("a model", "");
    CHECK(completed(HF_INSPECT, "-m 'a m'", folder.path()) == Words{"a model"});
    CHECK(completed(HF_INSPECT, "a", folder.path()) == Words{"a model"});
}

TEST_CASE("tools: zsh and troff find nothing wrong with what is made for them") {
    const TempFolder folder;
    for (const std::string& tool : kTools) {
        CAPTURE(tool);
        folder.write("page", said(tool, {"--man"}));
        folder.write("completion", said(tool, {"--completion", "zsh"}));
        const auto check = [&](const std::vector<std::string>& command) {
            if (!is_there(command[0])) return;
            std::string line;
            for (const std::string& word : command) line += word + " ";
            const Outcome run =
                run_process({"/bin/sh", "-c", line + ">/dev/null"},
                            {.environment = {"PATH=/usr/bin:/bin"}, .folder = folder.path()});
            CHECK(run.code == 0);
            CHECK(run.err == "");
        };
        check({"groff", "-man", "-ww", "-Tutf8", "page"});
        check({"zsh", "-n", "completion"});
        CHECK(contains(said(tool, {"--man"}), ".SH NAME\n"));
    }
}

TEST_CASE(
    "tools: --help fits a screen and lists the settings that the tool uses; others are refused") {
    const struct {
        std::string tool, used, unused;
    } rows[] = {
        {HF_RUN, "--temp --seed --kv --ctx --device --threads --isa --system --thinking", ""},
        {HF_INSPECT, "--model --kv --ctx --threads --gpu-layers --exec --vram-mb",
         "--temp --seed --system --thinking"},
        {HF_QUANTIZE, "--model --seed --threads --isa", "--temp --kv --ctx --device --thinking"},
        {HF_CROSSCHECK, "--model --kv --ctx --device --threads --isa", "--temp --seed --system"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.tool);
        CHECK(lines_of(said(row.tool, {"--help"})).size() <= 50);
        const std::set<std::string> flags = flags_of_help(row.tool);
        std::istringstream used(row.used), unused(row.unused);
        for (std::string flag; used >> flag;) CHECK_MESSAGE(flags.contains(flag), flag);
        for (std::string flag; unused >> flag;) {
            CAPTURE(flag);
            CHECK(flags.count(flag) == 0);
            const Outcome run = run_process({row.tool, flag, "1"});
            CHECK(run.code == 2);
            CHECK(contains(run.err, flag));
        }
        // but by its key every tool knows every setting, as from the file
        CHECK(contains(said(row.tool, {"--set", "sampling.temperature=0.25", "--explain-config"}),
                       "0.25"));
    }
}

TEST_CASE("tools: an unknown flag is met with the one that is near, by its name or its key") {
    const struct {
        std::string tool, wrong, says;
    } rows[] = {
        {HF_RUN, "--temprature=1", "unknown flag --temprature; the nearest is --temp; --help"},
        {HF_RUN, "--max-seq", "the nearest is --ctx;"},
        {HF_RUN, "--nothing-like-it", "unknown flag --nothing-like-it; --help"},
        {HF_INSPECT, "--swep", "the nearest is --sweep;"},
        {HF_INSPECT, "--temperature", "unknown flag --temperature; --help"},
        {HF_CROSSCHECK, "--perplex", "the nearest is --perplexity;"},
        {HF_QUANTIZE, "--fromat", "the nearest is --format;"},
    };
    for (const auto& row : rows) {
        const Outcome run = run_process({row.tool, row.wrong, "1"});
        CHECK(run.code == 2);
        CHECK_MESSAGE(contains(run.err, row.says), run.err);
    }
}

TEST_CASE("tools: --version says version, compiler, instruction levels and devices") {
    for (const std::string& tool : kTools) {
        const auto text = lines_of(said(tool, {"--version"}));
        REQUIRE(text.size() >= 4);
        CHECK(text[0].starts_with("hipfire "));
        CHECK((contains(text[0], "GNU ") || contains(text[0], "Clang ")));
        CHECK(text[1].starts_with("instruction levels of this CPU: scalar"));
        CHECK(text[2] == "devices:");
        CHECK(contains(said(tool, {"--version"}), "\n  host: "));
    }
}

TEST_CASE("tools: --list says which models are known, by whom, and the folder of models") {
    const TempFolder folder;
    fs::create_directory(folder / "models");
    folder.write("models/small.gguf", "GGUF");
    folder.write("models/README.md", "GGML");
    folder.write("models/empty.gguf", "");
    folder.write("models/big-00002-of-00002.gguf", "GGUF");
    fs::create_directory(folder / "models/cache");
    folder.write("hipfire.toml", "[models.mine]\npath = \"/somewhere/far/away/but/long/enough/" +
                                     std::string(60, 'x') + "/model\"\n");
    for (const std::string& tool : kTools) {
        const Outcome run = run_process(
            {tool, "--list"}, {.environment = {"HIPFIRE_MODELS_DIR=" + (folder / "models")},
                               .folder = folder.path()});
        CHECK(run.code == 0);
        const auto list = lines_of(run.out);
        REQUIRE(list.size() == 4);
        CHECK(list[0].starts_with("bundled "));
        CHECK(list[1].starts_with("mine "));
        CHECK(contains(list[1], "x/model  "));  // a path is never cut
        CHECK(contains(list[1], "hipfire.toml:"));
        CHECK(contains(list[2], "small.gguf  " + (folder / "models/small.gguf") + "  "));
        CHECK(contains(list[2], "HIPFIRE_MODELS_DIR"));
        CHECK(list[3] == "folder of models (HIPFIRE_MODELS_DIR): " + (folder / "models") +
                             "; 4 more in it are no models");
        CHECK(contains(said(tool, {"--list"}), "(HIPFIRE_MODELS_DIR): none"));
    }
}

TEST_CASE("tools: work of more than a second shows how far it is, on a terminal, and clears that") {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(terminal >= 0);
    REQUIRE(grantpt(terminal) == 0);
    REQUIRE(unlockpt(terminal) == 0);
    REQUIRE(fcntl(terminal, F_SETFL, O_NONBLOCK) == 0);
    const auto shown = [&] {
        char text[4096];
        const ssize_t n = read(terminal, text, sizeof text);
        return std::string(text, size_t(std::max<ssize_t>(n, 0)));
    };
    const int before = dup(STDERR_FILENO), other_end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    REQUIRE(dup2(other_end, STDERR_FILENO) >= 0);
    std::string early, late, done, quick, dropped;
    {
        const hf::Progress progress = hf::terminal_progress("tool", "working");
        const hf::Progress second = hf::terminal_progress("tool", "dropped");
        progress(1, 200);
        early = shown();
        std::this_thread::sleep_for(std::chrono::milliseconds(1050));
        progress(50, 200);
        late = shown();
        progress(200, 200);
        done = shown();
        hf::terminal_progress("tool", "quick")(1, 2);
        quick = shown();
        second(1, 4);
        shown();
    }
    dropped = shown();
    dup2(before, STDERR_FILENO);
    const bool is_empty = !hf::terminal_progress("tool", "not for a person");
    close(before), close(other_end), close(terminal);
    CHECK(early == "");
    CHECK(late == "\rtool: working, 25 %");
    CHECK(done == "\r                   \r");
    CHECK(quick == "");
    CHECK(dropped == "\r                   \r");
    CHECK(is_empty == (isatty(STDERR_FILENO) == 0));
}
