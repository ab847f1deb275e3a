// The parts of the chat that need no terminal: what is typed, what is shown, what is kept in files.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "tests/support/data.h"
#include "tools/chat_file.h"
#include "tools/chat_history.h"
#include "tools/chat_input.h"
#include "tools/chat_screen.h"
#include "tools/signals.h"
#include "tools/write_file.h"

using namespace hf;
using namespace hf::test;
namespace fs = std::filesystem;

namespace {

struct Folder {
    fs::path path = fs::temp_directory_path() / fmt::format("hf_chat_parts_{}", getpid());
    Folder() { fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
    std::string file(const std::string& name) const { return path / name; }
    size_t files() const {
        return size_t(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
    }
};

/// The message that these lines make; "..." at the end if it is not complete.
std::string message_of(const std::vector<std::string>& lines) {
    MessageLines message;
    bool is_complete = false;
    for (const std::string& line : lines) {
        CHECK_FALSE(is_complete);
        is_complete = message.add(line);
        CHECK_FALSE(message.is_empty());
    }
    std::string text = message.take();
    CHECK(message.is_empty());
    return is_complete ? text : text.append("...");
}

}  // namespace

TEST_CASE("chat input: lines become messages") {
    CHECK(message_of({"hello"}) == "hello");
    CHECK(message_of({""}) == "");
    CHECK(message_of({"a\\", "b"}) == "a\nb");
    CHECK(message_of({"\\", "\\", "b"}) == "\n\nb");
    CHECK(message_of({"a\\"}) == "a...");
    CHECK(message_of({"\"\"\"", "a", "", "  b\\", "\"\"\""}) == "a\n\n  b\\");
    CHECK(message_of({"\"\"\"a", "b\"\"\""}) == "a\nb");
    CHECK(message_of({" \"\"\"one line\"\"\" "}) == "one line");
    CHECK(message_of({"\"\"\"\"\"\""}) == "");
    CHECK(message_of({"\"\"\"", "", "a\"\"\""}) == "\na");
    CHECK(message_of({"\"\"\"", "a"}) == "a...");
    CHECK(message_of({"say \"\"\""}) == "say \"\"\"");
    CHECK(message_of({"three\npasted\nlines"}) == "three\npasted\nlines");
}

TEST_CASE("chat input: commands are one line that begins with a slash") {
    CHECK(parse_command("/save  a b.json ").name == "/save");
    CHECK(parse_command("/save  a b.json ").argument == "a b.json");
    CHECK(parse_command("/quit").name == "/quit");
    CHECK(parse_command("/quit").argument.empty());
    CHECK(parse_command("/").name == "/");
    for (const char* message : {"", "hello /quit", " /quit", "/usr/bin\nis a folder"})
        CHECK(parse_command(message).name.empty());
}

TEST_CASE("chat screen: thinking is told apart in every style, and colours always end") {
    const struct {
        ScreenStyle style;
        bool shows;
        std::string want;
    } cases[] = {
        {{true, true}, true, "\x1b[2mhm\x1b[0m\n\nYes.\n"},
        {{true, false}, true, "(thinking)\nhm\n(end of thinking)\n\nYes.\n"},
        {{false, false}, true, "(thinking)\nhm\n(end of thinking)\n\nYes.\n"},
        {{true, true}, false, "\x1b[2mthinking ...\x1b[0m\r\x1b[KYes.\n"},
        {{false, false}, false, "thinking ...\nYes.\n"},
    };
    for (const auto& c : cases) {
        std::string seen;
        ChatScreen screen([&](std::string_view text) { seen += text; }, c.style, c.shows);
        for (int again = 0; again < 2; ++again) {
            seen.clear();
            screen.answer(AnswerPart::thinking, "hm");
            screen.answer(AnswerPart::answer, "Yes");
            screen.answer(AnswerPart::answer, ".");
            screen.end_answer();
            CHECK(seen == c.want);
        }
        seen.clear();
        screen.answer(AnswerPart::answer, "No.\n");
        screen.end_answer();
        CHECK(seen == "No.\n");
    }
}

TEST_CASE("chat screen: nothing that a model or a file says can move the cursor") {
    std::string seen;
    ChatScreen screen([&](std::string_view text) { seen += text; }, {}, true);
    screen.answer(AnswerPart::answer, "a\x1b[2J\rb\x07\x7f\u009b1m\tc\nd");
    screen.end_answer();
    screen.note("x\x1b]0;y\x07");
    screen.error("z\x1b[A");
    screen.print("\x1b[H");
    for (const char c : {'\x1b', '\r', '\x07', '\x7f'}) CHECK(seen.find(c) == seen.npos);
    CHECK(seen.find("\u009b") == seen.npos);
    CHECK(seen.find("\tc\nd\n") != seen.npos);
}

TEST_CASE("chat file: what is saved is loaded") {
    const std::vector<ChatMessage> messages = {{"system", "Be brief.", {}},
                                               {"user", "\"q\" \\ \u00e9\n\ttab", {}},
                                               {"assistant", "", "hm\n"},
                                               {"user", "again", {}},
                                               {"assistant", "yes", {}}};
    const auto read = parse_chat_file(chat_file_text(messages, "a model"), "f");
    REQUIRE(read.size() == messages.size());
    for (size_t i = 0; i < read.size(); ++i) {
        CHECK(read[i].role == messages[i].role);
        CHECK(read[i].content == messages[i].content);
        CHECK(read[i].reasoning == messages[i].reasoning);
    }
}

TEST_CASE("chat file: what is no saved chat is refused, with the file's name") {
    const std::string good = chat_file_text(
        std::vector<ChatMessage>{{"user", "a", {}}, {"assistant", "b", {}}}, "model");
    for (size_t n = 0; n + 2 < good.size(); ++n) {  // the last two are a brace and a newline
        CAPTURE(n);
        CHECK_THROWS_WITH_AS(parse_chat_file(std::string(good.data(), n), "f.json"),
                             doctest::Contains("f.json"), Error);
    }
    const std::string head = R"({"format": "hipfire chat", "version": 1, )";
    const std::string cases[] = {
        good + "{}",
        "[]",
        "7",
        "{}",
        R"({"messages": [{"role": "user", "content": "a"}]})",
        R"({"format": "other", "version": 1, "messages": [{"role": "user", "content": "a"}]})",
        R"({"format": "hipfire chat", "version": 2, "messages": [{"role": "u", "content": "a"}]})",
        R"({"format": "hipfire chat", "messages": [{"role": "user", "content": "a"}]})",
        head + R"("messages": []})",
        head + R"("messages": 7})",
        head + R"("messages": [7]})",
        head + R"("messages": [{"role": "user"}]})",
        head + R"("messages": [{"content": "a"}]})",
        head + R"("messages": [{"role": 7, "content": "a"}]})",
        head + R"("messages": [{"role": "user", "content": "a", "content": "b"}]})",
        head + R"("messages": [{"role": "user", "content": "a", "tool_calls": []}]})",
        head + R"("messages": [{"role": "user", "content": "\ud800"}]})",
        head + R"("version": 1, "messages": [{"role": "user", "content": "a"}]})",
        head + R"("extra": 1, "messages": [{"role": "user", "content": "a"}]})",
        std::string(100000, '['),
    };
    for (const std::string& text : cases) {
        CAPTURE(text.substr(0, 120));
        CHECK_THROWS_WITH_AS(parse_chat_file(text, "f.json"), doctest::Contains("f.json"), Error);
    }
    const auto hostile =
        parse_chat_file(head + R"("messages": [{"role": "user", "content": "\u001b[2J"}]})", "f");
    CHECK(hostile[0].content == "\ufffd[2J");
}

TEST_CASE("chat history: messages of several lines come back, the oldest go, nobody else reads") {
    const Folder folder;
    const std::string path = folder.file("state/hipfire/history");
    ChatHistory history(path);
    CHECK(history.read().empty());
    const std::vector<std::string> messages = {"a", "b\nc\\n", "\\", "\u00e9", "a"};
    for (const std::string& message : messages) history.add(message);
    history.add("a");  // twice in a row is once
    CHECK(history.read() == messages);
    struct stat info;
    REQUIRE(stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
    REQUIRE(stat(fs::path(path).parent_path().c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0700);

    history.add(std::string(ChatHistory::kLongest + 1, 'x'));
    CHECK(history.read() == messages);
    std::string many;
    for (size_t i = 0; i < ChatHistory::kMostMessages + 5; ++i) many += fmt::format("m{}\n", i);
    write_file(path, many, 0600);
    history.add("last");
    const auto kept = history.read();
    CHECK(kept.size() == ChatHistory::kMostMessages);
    CHECK(kept.back() == "last");
    CHECK(kept.front() == "m6");

    for (int i = 0; i < 66; ++i)
        history.add(std::string(ChatHistory::kLongest, char('a' + i % 26)));
    CHECK(fs::file_size(path) <= ChatHistory::kMostBytes);
    CHECK(history.read().size() > 50);
}

TEST_CASE("chat history: two chats at once lose nothing") {
    const Folder folder;
    const std::string path = folder.file("history");
    const auto write_many = [&](char name) {
        for (int i = 0; i < 30; ++i) ChatHistory(path).add(fmt::format("{}{}", name, i));
    };
    // One process has one name for what it writes beside the file, so each chat is a process.
    const pid_t child = fork();
    if (child == 0) {
        write_many('a');
        _exit(0);
    }
    write_many('b');
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(ChatHistory(path).read().size() == 60);
}

TEST_CASE("chat history: Ctrl-C while it is written loses nothing of it") {
    const Folder folder;
    ChatHistory history(folder.file("history"));
    history.add("kept");
    interrupted() = true;
    history.add("new");
    interrupted() = false;
    CHECK(history.read() == std::vector<std::string>{"kept", "new"});
}

TEST_CASE("chat history: whatever stands in the file is text, and a file too large is none") {
    const Folder folder;
    const std::string path = folder.file("history");
    write_file(path, std::string("\n\n\xff\x1b[2J\n\\\nend", 13), 0600);
    const auto messages = ChatHistory(path).read();
    REQUIRE(messages.size() == 3);
    CHECK(messages[0] == "\ufffd\ufffd[2J");
    CHECK(messages[1] == "\\");
    CHECK(messages[2] == "end");
    fs::resize_file(path, 4 * ChatHistory::kMostBytes + 1);
    CHECK_THROWS_WITH_AS(ChatHistory(path).read(), doctest::Contains("no history"), Error);
    CHECK_THROWS_AS(ChatHistory(path).add("x"), Error);
    CHECK(fs::file_size(path) == 4 * ChatHistory::kMostBytes + 1);
    CHECK(ChatHistory("").read().empty());
    CHECK_NOTHROW(ChatHistory("").add("x"));
}

TEST_CASE("chat history: where it is kept") {
    CHECK(history_path({{"HOME", "/h"}, {"XDG_STATE_HOME", "/s"}}) == "/s/hipfire/history");
    CHECK(history_path({{"HOME", "/h"}, {"XDG_STATE_HOME", "s"}}) ==
          "/h/.local/state/hipfire/history");
    CHECK(history_path({{"HOME", "/h"}}) == "/h/.local/state/hipfire/history");
    CHECK(history_path({{"HOME", "h"}}).empty());
    CHECK(history_path({}).empty());
}

TEST_CASE("write file: the whole file or nothing, and what stood there is replaced at once") {
    const Folder folder;
    const std::string path = folder.file("f"), link = folder.file("link");
    write_file(path, "one", 0600);
    CHECK(read_file(path) == "one");
    fs::create_symlink(path, link);
    write_file(link, "two", 0600);
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    write_file(path, "two", 0666);  // one that others may not read stays so
    CHECK((fs::status(path).permissions() & fs::perms::others_read) == fs::perms::none);
    CHECK(fs::is_symlink(link));
    CHECK(read_file(path) == "two");
    CHECK(folder.files() == 2);

    CHECK_THROWS_WITH_AS(write_file(folder.path, "x", 0600), doctest::Contains("regular"), Error);
    CHECK_THROWS_WITH_AS(write_file(folder.file("none/f"), "x", 0600),
                         doctest::Contains("No such file"), Error);
    CHECK_THROWS_WITH_AS(write_file("/dev/full", "x", 0600), doctest::Contains("regular"), Error);
    CHECK(folder.files() == 2);
}
