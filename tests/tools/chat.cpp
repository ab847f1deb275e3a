// The chat on a terminal: how it begins, how it is interrupted, and how it leaves the terminal.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "tests/support/data.h"
#include "tests/tools/process.h"
#include "tests/tools/terminal_process.h"
#include "tests/tools/texts.h"

using namespace hf::test;
namespace fs = std::filesystem;

namespace {

using Texts = std::vector<std::string>;

constexpr const char* kPrompt = "> ";
constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";
constexpr const char* kCtrlQ = "\x11";
constexpr const char* kCtrlS = "\x13";
constexpr const char* kCtrlZ = "\x1a";
constexpr const char* kQuitKey = "\x1c";
const Texts kLongAnswer = {"--ignore-eos", "--max-tokens", "1500"};
const Texts kSlow = {"--isa", "scalar", "--threads", "1"};

Texts joined(Texts a, const Texts& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

struct Setup {
    Texts flags = {};
    Texts environment = {};
    std::string editrc = {};  // what ~/.editrc holds; empty: there is none
    std::function<void()> prepare = {};
};

/// A chat with the bundled model, greedy, with a home of its own.
struct Chat {
    explicit Chat(const Setup& setup = {}) {
        fs::create_directories(home);
        if (!setup.editrc.empty()) std::ofstream(home / ".editrc") << setup.editrc;
        const Texts environment = {"TERM=xterm", "HOME=" + home.string()};
        process.emplace(joined({HF_RUN, "-m", demo_model_path(), "--temp", "0"}, setup.flags),
                        joined(setup.environment, environment), setup.prepare);
    }
    ~Chat() {
        process.reset();
        fs::remove_all(home);
    }
    TerminalProcess* operator->() { return &*process; }
    void enter(const std::string& line) { process->type(line + "\r"); }
    bool is_ready() { return process->wait_for(kPrompt); }

    /// Leaves by Ctrl-D: exit code 0 and the terminal as it was.
    void leave() {
        process->type(kCtrlD);
        CHECK(process->wait_for_exit() == 0);
        CHECK(process->is_restored());
    }

    fs::path home = fs::temp_directory_path() / ("hf_chat_" + std::to_string(getpid()));
    std::optional<TerminalProcess> process;
};

/// Clock ticks that a process has computed.
long ticks_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string word;
    for (int i = 0; i < 13; ++i) file >> word;  // the name holds no space
    long user = 0, system = 0;
    file >> user >> system;
    return user + system;
}

}  // namespace

TEST_CASE("chat: a question is answered, the next one knows the past, and /stats counts tokens") {
    Chat chat;
    REQUIRE(chat->wait_for("/help lists the commands"));
    std::istringstream greeting(chat->output());
    for (std::string line; std::getline(greeting, line);)
        if (!contains(line, demo_model_path())) CHECK(line.size() <= 80);
    REQUIRE(chat.is_ready());
    chat.enter("What do cows eat?");
    CHECK(chat->wait_for("grass"));
    REQUIRE(chat.is_ready());
    chat.enter("/stats");
    CHECK(chat->wait_for("13 forwarded"));
    CHECK(chat->wait_for("1 turn:"));
    REQUIRE(chat.is_ready());
    chat.enter("And what do cats eat?");
    REQUIRE(chat.is_ready());
    chat.enter("/retry");
    REQUIRE(chat.is_ready());
    chat.enter("/stats");
    CHECK(chat->wait_for("3 turns:"));
    REQUIRE(chat.is_ready());
    chat.leave();
}

TEST_CASE("chat: every way to leave restores the terminal and has its exit code") {
    const struct {
        const char* name;
        std::function<void(Chat&)> leave;
        int code;
    } ways[] = {
        {"/quit", [](Chat& c) { c.enter("/quit"); }, 0},
        {"Ctrl-D", [](Chat& c) { c->type(kCtrlD); }, 0},
        {"Ctrl-C and again",
         [](Chat& c) {
             c->type(kCtrlC);
             CHECK(c->wait_for("Ctrl-C again leaves"));
             REQUIRE(c.is_ready());
             c->type(kCtrlC);
         },
         0},
        {"TERM", [](Chat& c) { c->signal(SIGTERM); }, 130},
        {"HUP", [](Chat& c) { c->signal(SIGHUP); }, 129},
        {"TERM in a block",
         [](Chat& c) {
             c.enter("\"\"\"");
             REQUIRE(c->wait_for(". "));
             c->signal(SIGTERM);
         },
         130},
        {"TERM and HUP, twice",
         [](Chat& c) {
             c->signal(SIGSTOP);  // both arrive before it can end by itself
             c->signal(SIGTERM);
             c->signal(SIGHUP);
             c->signal(SIGCONT);
         },
         129},
        {"QUIT", [](Chat& c) { c->signal(SIGQUIT); }, 128 + SIGQUIT},
        {"the key of QUIT", [](Chat& c) { c->type(kQuitKey); }, 128 + SIGQUIT},
    };
    for (const auto& way : ways) {
        CAPTURE(std::string(way.name));
        Chat chat({.prepare = [] {
            const rlimit no_core = {0, 0};
            setrlimit(RLIMIT_CORE, &no_core);
        }});
        REQUIRE(chat.is_ready());
        CHECK_FALSE(chat->is_restored());
        way.leave(chat);
        CHECK(chat->wait_for_exit() == way.code);
        CHECK(chat->is_restored());
        const std::string& out = chat->output();
        CHECK(out.rfind("\x1b[?2004l") > out.rfind("\x1b[?2004h"));  // pastes are ordinary again
        const bool is_sudden = contains(way.name, "twice") || contains(way.name, "QUIT");
        if (!is_sudden) CHECK(out.ends_with("\n\x1b[?2004l"));
    }
}

TEST_CASE("chat: a terminal that goes away ends it, at the prompt and in an answer") {
    for (const bool in_answer : {false, true}) {
        Chat chat({.flags = kLongAnswer});
        REQUIRE(chat.is_ready());
        if (in_answer) {
            chat.enter("Tell me a story.");
            REQUIRE(chat->wait_for("nce"));
        }
        chat->hang_up();
        const int code = chat->wait_for_exit();
        CHECK((code == 130 || code == 129));
    }
}

TEST_CASE("chat: stopped and continued from outside it goes on where it was") {
    Chat chat;
    REQUIRE(chat.is_ready());
    chat->type("What do cows");
    REQUIRE(chat->wait_for("cows"));
    chat->signal(SIGSTOP);  // cannot be caught; a shell would give the terminal its own modes
    REQUIRE(chat->wait_until_stopped());
    chat->signal(SIGCONT);
    REQUIRE(chat->wait_for("What do cows"));
    chat->resize(40, 10);
    REQUIRE(chat->wait_for("What do cows"));
    chat.enter(" eat?");
    CHECK(chat->wait_for("grass"));
    REQUIRE(chat.is_ready());
    chat.leave();
}

TEST_CASE("chat: Ctrl-C stops an answer, which stays; the terminal is untouched meanwhile") {
    Chat chat({.flags = kLongAnswer});
    REQUIRE(chat.is_ready());
    chat.enter("Tell me a story.");
    REQUIRE(chat->wait_for("nce"));
    CHECK(chat->is_restored());
    chat->type(kCtrlC);
    CHECK(chat->wait_for("(interrupted)"));
    REQUIRE(chat.is_ready());
    const std::string file = chat.home / "saved.json";
    chat.enter("/save " + file);
    CHECK(chat->wait_for("2 messages saved"));
    REQUIRE(chat.is_ready());
    CHECK(contains(read_file(file), "nce"));
    chat.enter("/save " + file);  // the chat's own file
    CHECK(chat->wait_for("2 messages saved"));
    REQUIRE(chat.is_ready());

    chat.enter("/reset");
    REQUIRE(chat.is_ready());
    chat.enter("/save " + file + "2");
    CHECK(chat->wait_for("nothing to save"));
    REQUIRE(chat.is_ready());
    chat.enter("/load " + file);
    CHECK(chat->wait_for("2 messages loaded"));
    REQUIRE(chat.is_ready());

    chat.enter("Go on.");
    REQUIRE(chat->wait_for("\n"));
    chat->signal(SIGTERM);
    CHECK(chat->wait_for_exit() == 130);
    CHECK(chat->is_restored());
}

TEST_CASE("chat: Ctrl-C in a long prompt drops the message, and the chat goes on") {
    Chat chat({.flags = kSlow});
    REQUIRE(chat.is_ready());
    std::string text = "\"\"\"";
    for (int i = 0; i < 40; ++i) text += "the cat sat on the mat and looked at the big red dog ";
    chat.enter(text + "\"\"\"");
    REQUIRE(chat->wait_for("prompt, "));  // shown when it takes longer than a second
    chat->type(kCtrlC);
    CHECK(chat->wait_for("the message was not kept"));
    REQUIRE(chat.is_ready());
    chat.enter("/retry");
    CHECK(chat->wait_for("no answer"));
    REQUIRE(chat.is_ready());
    chat.leave();
}

TEST_CASE("chat: an interrupt at any time of the start ends it or comes to the prompt") {
    for (int ms = 0; ms <= 64; ms = ms * 2 + 1) {
        CAPTURE(ms);
        Chat chat;
        usleep(useconds_t(ms) * 1000);
        chat->signal(SIGINT);
        if (chat.is_ready()) {  // it came late: the chat is there
            chat->type(kCtrlD);
            CHECK(chat->wait_for_exit() == 0);
        } else {
            const int code = chat->wait_for_exit();
            CHECK((code == 130 || code == 128 + SIGINT));
        }
        CHECK(chat->is_restored());
    }
}

TEST_CASE("chat: a full disk leaves no half file, and says so") {
    Chat chat({.prepare = [] {
        const rlimit full = {10, 10};
        setrlimit(RLIMIT_FSIZE, &full);
    }});
    REQUIRE(chat.is_ready());
    chat.enter("What do cows eat?");
    CHECK(chat->wait_for("the history is not kept"));  // once
    REQUIRE(chat.is_ready());
    const fs::path file = chat.home / "saved.json";
    chat.enter("/save " + file.string());
    CHECK(chat->wait_for("cannot be written: File too large"));
    REQUIRE(chat.is_ready());
    for (const auto& entry : fs::recursive_directory_iterator(chat.home))
        CHECK(entry.is_directory());
    chat.leave();
    const std::string& out = chat->output();
    CHECK(out.find("history is not kept") == out.rfind("history is not kept"));
}

TEST_CASE("chat: what is wrong is said, and the chat goes on") {
    Chat chat({.flags = {"--stop", "grass"}});
    REQUIRE(chat.is_ready());
    const fs::path other = chat.home / "other";
    std::ofstream(other) << "{}";
    std::ofstream(chat.home / "turns")
        << R"({"format": "hipfire chat", "version": 1, "messages": [{"role": "user", "content": "x"}]})";
    const struct {
        std::string line;
        const char* says;
    } cases[] = {
        {"/stast", "nearest is /stats"},
        {"/usr/bin", "/usr/bin is no command. /help lists them"},
        {"/save", "/save FILE"},
        {"/quit now", "takes nothing"},
        {"/thinking loud", "show or hide"},
        {"/retry", "no answer"},
        {"/load /no/such/file", "/no/such/file"},
        {"/load /", "directory"},
        {"/load ~/other", "is not a saved chat"},
        {"/load ~/turns", "/turns: the last of 1 messages"},
        {"/load ~root/x", "~root/x: only ~/FILE"},
        {"/system", "no system message"},
        {"What do cows eat?", "(ended in front of a text of --stop)"},
        {"/save ~", "./~ for a file of that name"},
        {"/reset", "a new conversation"},
        {"/system Be brief.", "system message: Be brief."},
        {"/save ~/other", "exists already"},
        {"/system none", "no system message"},
        {"/thinking hide", "hidden"},
        {"/help", "/quit"},
    };
    for (const auto& c : cases) {
        CAPTURE(c.line);
        chat.enter(c.line);
        CHECK(chat->wait_for(c.says));
        REQUIRE(chat.is_ready());
    }
    CHECK(read_file(other) == "{}");
    chat.leave();
}

TEST_CASE("chat: a model without a template is refused with a command that works, path and all") {
    const fs::path folder = fs::temp_directory_path() / ("hf chat's " + std::to_string(getpid()));
    fs::create_directories(folder);
    for (const char* name : {"config.json", "model.safetensors"})
        fs::create_symlink(data_path("models/tiny_llama/") + name, folder / name);
    fs::create_symlink(demo_model_path() + "/tokenizer.json", folder / "tokenizer.json");
    TerminalProcess chat({HF_RUN, folder}, {"TERM=dumb"});
    CHECK(chat.wait_for("has no chat template"));
    CHECK(chat.wait_for("--template"));
    CHECK(chat.wait_for("hf-run '" + fs::temp_directory_path().string() + "/hf chat'\\''s " +
                        std::to_string(getpid()) + "' \"Once upon a time\""));
    CHECK(chat.wait_for_exit() == 4);
    fs::remove_all(folder);
}

TEST_CASE("chat: Ctrl-C ends the wait for a file that does not come, and the conversation stays") {
    Chat chat;
    const std::string fifo = chat.home / "fifo";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    REQUIRE(chat.is_ready());
    chat.enter("/load " + fifo);
    REQUIRE(chat->wait_for("fifo"));
    REQUIRE(chat->wait_for("\x1b[?2004l"));  // from here on the terminal sends signals again
    chat->type(kCtrlC);
    CHECK(chat->wait_for("(interrupted; nothing was loaded)"));
    REQUIRE(chat.is_ready());
    chat.leave();
}

TEST_CASE("chat: characters beyond ASCII can be edited, whatever the locale") {
    for (const char* locale : {"LC_ALL=C", "LC_ALL=de_DE.UTF-8"}) {
        Chat chat({.flags = {"--max-tokens", "3"}, .environment = {locale}});
        REQUIRE(chat.is_ready());
        chat.enter("/\u00e4\u6f22\u5b57\u007fx\u007f\u007fz");  // DEL erases a whole character
        CHECK(chat->wait_for("/\u00e4z is no command"));
        REQUIRE(chat.is_ready());
        chat.leave();
    }
}

TEST_CASE("chat: a paste of several lines is one message, and the next chat remembers it") {
    std::optional<Chat> chat(std::in_place);
    REQUIRE(chat->is_ready());
    (*chat)->type("\x1b[200~one\rtwo\rthr\x1b[31mee\r\x1b[201~");
    REQUIRE((*chat)->wait_for("ee"));
    chat->enter("");
    REQUIRE(chat->is_ready());
    chat->enter("/stats");
    CHECK((*chat)->wait_for("1 turn:"));
    REQUIRE(chat->is_ready());
    const std::string history = read_file(chat->home / ".local/state/hipfire/history");
    CHECK(history == "one\\ntwo\\nthr\ufffd[31mee\n/stats\n");
    chat->leave();
}

TEST_CASE("chat: with vi's keys Escape is a key of its own, and a paste is one in both modes") {
    Chat chat({.flags = {"--max-tokens", "1", "--ignore-eos"}, .editrc = "bind -v\n"});
    const auto is_answered = [&] {
        return chat->wait_for("cut off after 1 token") && chat.is_ready();
    };
    REQUIRE(chat.is_ready());
    chat->type("xabc");
    REQUIRE(chat->wait_for("xabc"));
    chat->type("\x1b");  // a command deletes the first character, another inserts at the end
    chat->type("0x");
    chat->type("Ad\x1b[200~ one\rtwo\r\x1b[201~!\r");
    REQUIRE(is_answered());
    chat->type("ab");
    REQUIRE(chat->wait_for("ab"));
    chat->type("\x1b");
    chat->type("\x1b[200~X\x1b[201~\r");
    REQUIRE(is_answered());
    chat->type("\xc2\x9cz\r");  // what stands for a paste inside cannot be typed
    REQUIRE(is_answered());
    CHECK(read_file(chat.home / ".local/state/hipfire/history") ==
          "abcd one\\ntwo!\naXb\n\ufffdz\n");
    chat.leave();
}

TEST_CASE("chat: in a paste no key is one: what would interrupt, stop or freeze is text") {
    Chat chat;
    REQUIRE(chat.is_ready());
    std::string paste = "\x1b[200~a";
    for (const char* key : {kCtrlC, kCtrlD, kCtrlQ, kCtrlS, kCtrlZ, kQuitKey}) paste += key;
    chat->type(paste + "/quit\rz\x1b[201~");
    REQUIRE(chat->wait_for("z"));
    chat.enter("");
    REQUIRE(chat.is_ready());
    CHECK(read_file(chat.home / ".local/state/hipfire/history") ==
          "a\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd/quit\\nz\n");
    chat.leave();
}

TEST_CASE("chat: the terminal's own key interrupts, not another one") {
    Chat chat({.prepare = [] {
        termios modes;
        tcgetattr(STDIN_FILENO, &modes);
        modes.c_cc[VINTR] = 7;
        tcsetattr(STDIN_FILENO, TCSANOW, &modes);
    }});
    REQUIRE(chat.is_ready());
    chat->type("dropped\x07");
    REQUIRE(chat.is_ready());
    chat->type("\x07");
    CHECK(chat->wait_for("Ctrl-C again leaves"));
    REQUIRE(chat.is_ready());
    chat->type("\x07");
    CHECK(chat->wait_for_exit() == 0);
}

TEST_CASE("chat: colours and escapes only where they are wanted") {
    const struct {
        Texts environment;
        bool has_colours, has_escapes;
    } cases[] = {{{}, true, true},
                 {{"NO_COLOR=1"}, false, true},
                 {{"TERM=dumb"}, false, false},
                 {{"TERM=unknown"}, false, false},
                 {{"TERM="}, false, false}};
    for (const auto& c : cases) {
        CAPTURE(c.has_colours);
        // the template opens a block of thinking, which such heat hardly ever closes
        Chat chat({.flags = {"--thinking", "true", "--temp", "50", "--seed", "1", "--set",
                             "sampling.top_k=0", "--ignore-eos", "--max-tokens", "8"},
                   .environment = c.environment});
        REQUIRE(chat.is_ready());
        chat.enter("What do cows eat?");
        REQUIRE(chat.is_ready());
        chat.leave();
        const std::string& out = chat->output();
        CHECK(contains(out, "\x1b[2m") == c.has_colours);
        CHECK(contains(out, "(thinking)") != c.has_colours);
        CHECK(contains(out, "\x1b[?2004h") == c.has_escapes);
        if (!c.has_escapes) CHECK_FALSE(contains(out, "\x1b"));
    }
}

TEST_CASE("chat: at the prompt nothing computes, with one team of threads or two") {
    const Texts kTeams[] = {
        {"--threads", "2"},
        {"--threads", "2", "--vram-mb", "64", "--gpu-layers", "6", "--exec", "cpu"}};
    for (const Texts& flags : kTeams) {
        Chat chat({.flags = flags});
        REQUIRE(chat.is_ready());
        chat.enter("What do cows eat?");
        REQUIRE(chat->wait_for("grass"));
        REQUIRE(chat.is_ready());
        usleep(50'000);  // threads give up waiting for work after a fraction of this
        const long before = ticks_of(chat->pid());
        usleep(300'000);
        CHECK(ticks_of(chat->pid()) - before <= 1);
        chat.leave();
    }
}

TEST_CASE(
    "chat: without a terminal at both ends there is none, and flags of one answer are refused") {
    const Texts demo = {HF_RUN, "-m", demo_model_path()};
    const Outcome no_input =
        run_process({"/bin/sh", "-c", "exec \"$0\" \"$@\" <&-", HF_RUN, "-m", demo_model_path()});
    CHECK(no_input.code == 2);
    CHECK(contains(no_input.err, "the prompt is empty"));
    const struct {
        Texts command;
        const char* says;
        int code;
    } cases[] = {
        {joined(demo, {"--json"}), "--json needs a prompt", 2},
        {joined(demo, {"--raw"}), "--raw needs a prompt", 2},
        {{HF_RUN, "-m", data_path("models/tiny_qwen35_a")}, "has no tokenizer", 4},
        {joined(demo, {"--template", "llama3"}), "needs the token '<|begin_of_text|>'", 1},
        {{"/bin/sh", "-c", "\"$0\" \"$@\" >&-", HF_RUN, "-m", demo_model_path()},
         "there is no prompt",
         2},
    };
    for (const auto& c : cases) {
        TerminalProcess process(c.command, {"TERM=xterm"});
        CHECK(process.wait_for(c.says));
        CHECK(process.wait_for_exit() == c.code);
        CHECK(process.is_restored());
    }
}
