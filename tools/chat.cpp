#include "tools/chat.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/config/keys.h"
#include "libcore/config/nearest.h"
#include "tools/chat_file.h"
#include "tools/chat_history.h"
#include "tools/chat_input.h"
#include "tools/output.h"
#include "tools/signals.h"
#include "tools/terminal.h"
#include "tools/write_file.h"

namespace hf {
namespace {

/// What all turns took together.
struct Totals {
    uint32_t turns = 0;
    uint64_t forwarded = 0, reused = 0, written = 0;  // tokens
};

class Chat {
  public:
    explicit Chat(const ChatSetup& setup)
        : setup_(setup),
          conversation_(setup.conversation),
          screen_([this](std::string_view text) { write(text); }, setup.style,
                  setup.shows_thinking),
          history_(setup.history_path),
          editor_(setup.style.has_escapes) {}

    int run();

    void help(std::string_view);
    void reset(std::string_view);
    void system(std::string_view text);
    void stats(std::string_view);
    void thinking(std::string_view word);
    void retry(std::string_view);
    void save(std::string_view path);
    void load(std::string_view path);
    void quit(std::string_view) { is_done_ = true; }

  private:
    const ChatSetup& setup_;
    bool is_gone_ = false;  // the terminal
    Conversation& conversation_;
    Output output_;
    ChatScreen screen_;
    ChatHistory history_;
    bool keeps_history_ = true;
    LineEditor editor_;
    bool is_done_ = false;
    std::optional<Turn> last_turn_;
    Totals totals_;
    std::string own_file_;  // saved or loaded by this chat: /save may write it again

    void write(std::string_view text);
    bool read_message(std::string& message);
    void read_history();
    void keep_in_history(const std::string& message);
    void handle(const std::string& message);
    void command(std::string_view name, std::string_view argument);
    void take_turn(const std::function<Turn(const TurnWatch&)>& turn);
    void say_why_it_ended(const Generation& generation);
};

struct Command {
    std::string_view name, argument;  // argument: what stands in the help; empty: takes none
    bool needs_argument;
    void (Chat::*run)(std::string_view argument);
    std::string_view meaning;
};

constexpr Command kCommands[] = {
    {"/help", "", false, &Chat::help, "This list"},
    {"/reset", "", false, &Chat::reset, "Begin anew; the system message stays"},
    {"/system", "TEXT", false, &Chat::system, "Set the system message; none: take it away"},
    {"/retry", "", false, &Chat::retry, "Answer the last message again, in another way"},
    {"/thinking", "show|hide", true, &Chat::thinking, "Whether what the model thinks is shown"},
    {"/stats", "", false, &Chat::stats, "Tokens, speeds, and how full the context is"},
    {"/save", "FILE", true, &Chat::save, "Write the conversation to a file"},
    {"/load", "FILE", true, &Chat::load, "Go on with a conversation from a file"},
    {"/quit", "", false, &Chat::quit, "Leave; so does Ctrl-D"},
};

/// A path as the shell would take it: ~/ is the home.
/// Errors  hf::Error(usage) for what a shell would make something else of
std::string full_path(const std::string& home, std::string_view path) {
    if (path == "-") return "./-";  // a file, not standard input
    if (!path.starts_with('~')) return std::string(path);
    if (path.starts_with("~/") && !home.empty()) return fmt::format("{}{}", home, path.substr(1));
    throw Error(fmt::format("{}: {}; write the whole path, or ./{} for a file of that name", path,
                            path.starts_with("~/") ? "HOME is not set, so there is no ~"
                                                   : "only ~/FILE, in your own home, is known",
                            path),
                Fault::usage);
}

}  // namespace

void Chat::help(std::string_view) {
    std::string text;
    for (const Command& c : kCommands)
        text += fmt::format("  {:<20} {}\n", fmt::format("{} {}", c.name, c.argument), c.meaning);
    screen_.print(
        text +
        "  A line that ends in \\ goes on in the next one; \"\"\" begins and ends a text of "
        "several lines.\n"
        "  Ctrl-C stops an answer or drops a line, twice at an empty prompt it leaves.\n");
}

void Chat::reset(std::string_view) {
    conversation_.reset();
    screen_.note("(a new conversation)");
}

void Chat::system(std::string_view text) {
    if (!text.empty()) conversation_.set_system(text == "none" ? "" : text);
    const std::string_view now = conversation_.system();
    screen_.note(now.empty() ? "(no system message)" : fmt::format("(system message: {})", now));
}

void Chat::thinking(std::string_view word) {
    if (word != "show" && word != "hide")
        throw Error(fmt::format("/thinking takes show or hide, not '{}'", word), Fault::usage);
    screen_.show_thinking(word == "show");
    screen_.note(word == "show" ? "(thinking is shown)" : "(thinking is hidden)");
}

void Chat::stats(std::string_view) {
    const uint32_t used = conversation_.context_used(), size = conversation_.context_size();
    std::string text =
        fmt::format("context    {} of {} tokens ({:.0f} %)\n", used, size, 100.0 * used / size);
    if (last_turn_) {
        const Generation& g = last_turn_->generation;
        text += fmt::format(
            "last turn  {} forwarded ({:.1f} tok/s), {} reused, {} written ({:.1f} tok/s, {:.2f} "
            "GB/s){}, {}\n",
            g.prompt.tokens, g.prompt.tok_per_s(), last_turn_->reused, g.ids.size(),
            g.decode.tok_per_s(), g.decode.gb_per_s(),
            last_turn_->seed ? fmt::format(", seed {}", *last_turn_->seed) : "",
            finish_name(g.finish));
    }
    text += fmt::format("all        {}: {} forwarded, {} reused, {} written\n",
                        counted(totals_.turns, "turn"), totals_.forwarded, totals_.reused,
                        totals_.written);
    screen_.print(text +
                  fmt::format("model      {}\ndevice     {}\n", setup_.model, setup_.device));
}

void Chat::retry(std::string_view) {
    take_turn([&](const TurnWatch& watch) { return conversation_.retry(watch); });
}

void Chat::save(std::string_view name) {
    const std::string path = full_path(setup_.home, name);
    if (conversation_.messages().empty()) throw Error("there is nothing to save yet", Fault::usage);
    std::error_code unreadable;
    if (path != own_file_ && std::filesystem::exists(path, unreadable))
        throw Error(fmt::format("{}: exists already; give another name", path));
    write_file(path, chat_file_text(conversation_.messages(), setup_.model), 0666);
    own_file_ = path;
    screen_.note(
        fmt::format("({} saved to {})", counted(conversation_.messages().size(), "message"), path));
}

void Chat::load(std::string_view name) {
    const std::string path = full_path(setup_.home, name);
    const std::string text = read_text(path);
    if (interrupted()) return screen_.note("(interrupted; nothing was loaded)");
    std::vector<ChatMessage> messages = parse_chat_file(text, path);
    try {
        conversation_.set_messages(std::move(messages));
    } catch (const Error& error) {
        throw Error(fmt::format("{}: {}", path, error.what()), error.fault());
    }
    own_file_ = path;
    screen_.note(fmt::format("({} loaded from {})",
                             counted(conversation_.messages().size(), "message"), path));
}

void Chat::say_why_it_ended(const Generation& g) {
    switch (g.finish) {
        case Finish::length:
            return screen_.note(fmt::format("(cut off after {}; --max-tokens allows more)",
                                            counted(g.ids.size(), "token")));
        case Finish::context:
            return screen_.note(
                fmt::format("(the context of {} tokens is full; /reset begins anew)",
                            conversation_.context_size()));
        case Finish::interrupted:
            return screen_.note(g.ids.empty() ? "(interrupted; the message was not kept)"
                                              : "(interrupted)");
        case Finish::stop_string:
            return screen_.note("(ended in front of a text of --stop)");
        case Finish::stop:
            return;
    }
}

void Chat::take_turn(const std::function<Turn(const TurnWatch&)>& turn) {
    const auto show = [&](AnswerPart part, std::string_view text) { screen_.answer(part, text); };
    try {
        last_turn_ = turn({show, setup_.progress(), interrupted()});
    } catch (...) {
        screen_.end_answer();
        throw;
    }
    screen_.end_answer();
    const Generation& g = last_turn_->generation;
    totals_.turns += 1;
    totals_.forwarded += g.prompt.tokens;
    totals_.reused += last_turn_->reused;
    totals_.written += g.ids.size();
    say_why_it_ended(g);
}

void Chat::command(std::string_view name, std::string_view argument) {
    const auto found = std::ranges::find(kCommands, name, &Command::name);
    if (found == std::end(kCommands)) {
        std::vector<std::string_view> names;
        for (const Command& c : kCommands) names.push_back(c.name);
        throw Error(fmt::format("{} is no command{}. /help lists them; a space before it makes it "
                                "a message",
                                one_line(name), nearest_words(nearest(name, names, "/"))),
                    Fault::usage);
    }
    if (argument.empty() && found->needs_argument)
        throw Error(fmt::format("it is {} {}", name, found->argument), Fault::usage);
    if (!argument.empty() && found->argument.empty())
        throw Error(
            fmt::format("{} takes nothing behind it; a space before it makes it a message", name),
            Fault::usage);
    (this->*found->run)(argument);
}

/// What goes wrong here is the person's to mend: it is said, and nothing has changed.
void Chat::handle(const std::string& message) {
    try {
        const CommandLine line = parse_command(message);
        if (!line.name.empty()) return command(line.name, line.argument);
        take_turn([&](const TurnWatch& watch) { return conversation_.ask(message, watch); });
    } catch (const Error& error) {
        screen_.error(error.what());
    }
}

/// A terminal that cannot be written is gone: the chat ends, and an answer with it.
void Chat::write(std::string_view text) {
    try {
        if (!is_gone_) output_.write(text);
        is_gone_ |= output_.is_closed();
    } catch (const Error&) {
        is_gone_ = true;
    }
    if (is_gone_) interrupted() = true;
}

void Chat::read_history() {
    try {
        for (const std::string& message : history_.read()) editor_.remember(message);
    } catch (const Error& error) {
        keeps_history_ = false;
        screen_.note(fmt::format("(no history: {})", error.what()));
    }
}

/// The first failure is said, and nothing is tried again.
void Chat::keep_in_history(const std::string& message) {
    editor_.remember(message);
    if (!keeps_history_) return;
    try {
        history_.add(message);
    } catch (const Error& error) {
        keeps_history_ = false;
        screen_.note(fmt::format("(the history is not kept: {})", error.what()));
    }
}

/// The next message with something in it; false at the end of the chat.
bool Chat::read_message(std::string& message) {
    MessageLines lines;
    for (bool was_interrupted = false;;) {
        const Line line = editor_.read(lines.is_empty() ? "> " : ". ");
        if (line.end == LineEnd::interrupted) {
            const bool drops_text = !line.text.empty() || !lines.is_empty();
            if (was_interrupted && !drops_text) return false;
            was_interrupted = !drops_text;
            lines = {};
            if (!drops_text) screen_.note("(Ctrl-C again leaves)");
            continue;
        }
        is_gone_ |= line.end == LineEnd::ended;
        if (line.end != LineEnd::text) return false;
        was_interrupted = false;
        if (!lines.add(line.text)) continue;
        message = lines.take();
        if (!is_blank(message)) return true;
    }
}

int Chat::run() {
    read_history();
    if (!setup_.is_quiet)
        screen_.note(fmt::format("{}\n{}\n{} tokens of context. /help lists the commands.",
                                 setup_.model, setup_.device, conversation_.context_size()));
    for (std::string message; !is_done_ && !is_gone_ && !end_wanted() && read_message(message);) {
        keep_in_history(message);
        handle(message);
    }
    if (end_wanted()) return interrupted_exit();
    return is_gone_ ? kInterruptedExit : 0;
}

int chat(const ChatSetup& setup) {
    catch_chat_signals(restore_terminal);
    return Chat(setup).run();
}

}  // namespace hf
