#include "tools/terminal.h"

#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/text/unicode.h"
#include "tools/output.h"
#include "tools/signals.h"

namespace hf {
namespace {

// Typed for the person when a signal ends the line, so that the cursor goes below all of its rows.
// Ctrl-C itself is a signal by then. What has begun (a key of several characters) may swallow some.
constexpr wchar_t kEndKey = 3;
constexpr const char* kEndKeyName = "^C";
constexpr int kMostEndKeys = 3;

constexpr int kHistoryLines = 1000;
constexpr size_t kMostBytes = 4096;  // of a paste, taken at once
constexpr std::string_view kPasteOn = "\x1b[?2004h", kPasteOff = "\x1b[?2004l";  // bracketed paste
constexpr std::string_view kPasteBegin = "\x1b[200~", kPasteEnd = "\x1b[201~";
// Stands for kPasteBegin as the editor sees it. Were that a key of several characters, Escape would
// begin it, and could not end vi's insert mode. No terminal sends this control character itself.
constexpr wchar_t kPasteKey = 0x9c;
constexpr const wchar_t* kPasteKeyName = L"\x9c";
constexpr int kMsInKey = 50;  // between the bytes of kPasteBegin, at most

// What signal handlers see of the line that is being edited.
termios modes_before;  // written before is_editing
std::atomic<bool> is_editing{false}, sends_escapes{false};
std::atomic<bool> stop_wanted{false}, has_continued{false}, has_resized{false};

void note_signal(int signal) {
    (signal == SIGTSTP ? stop_wanted : signal == SIGCONT ? has_continued : has_resized) = true;
    wake_up();
}

/// For signals that end the process while the terminal is not as it was.
void restore_and_die(int signal) {
    restore_terminal();
    ::signal(signal, SIG_DFL);
    raise(signal);
}

/// While it lives, a line is edited: signals that concern the terminal are caught. modes_before was
/// written.
class Editing {
  public:
    explicit Editing(bool has_escapes) {
        sends_escapes = has_escapes;
        is_editing = true;
        for (size_t i = 0; i < std::size(kSignals); ++i) {
            struct sigaction action {};
            action.sa_handler = kSignals[i].handler;
            sigemptyset(&action.sa_mask);
            sigaction(kSignals[i].number, &action, &before_[i]);
        }
        if (has_escapes) write_error_free(kPasteOn);
    }
    ~Editing() {
        restore_terminal();
        for (size_t i = 0; i < std::size(kSignals); ++i)
            sigaction(kSignals[i].number, &before_[i], nullptr);
    }
    Editing(const Editing&) = delete;
    Editing& operator=(const Editing&) = delete;

    static void write_error_free(std::string_view text) {
        [[maybe_unused]] const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    }

  private:
    struct Caught {
        int number;
        void (*handler)(int);
    };
    static constexpr Caught kSignals[] = {
        {SIGTSTP, note_signal},     {SIGCONT, note_signal},     {SIGWINCH, note_signal},
        {SIGQUIT, restore_and_die}, {SIGABRT, restore_and_die}, {SIGSEGV, restore_and_die},
    };
    struct sigaction before_[std::size(kSignals)];
};

/// While a line is edited the terminal leaves these keys to us, because a paste may hold them too.
/// One that is typed does what the terminal would do: it signals all who are in the foreground.
bool signal_of_key(char key) {
    constexpr struct {
        int place, signal;
    } kKeys[] = {{VINTR, SIGINT}, {VQUIT, SIGQUIT}, {VSUSP, SIGTSTP}};
    if ((modes_before.c_lflag & ISIG) == 0) return false;
    for (const auto& [place, signal] : kKeys)
        if (const cc_t own = modes_before.c_cc[place]; own != _POSIX_VDISABLE && own == cc_t(key))
            return kill(0, signal) == 0;
    return false;
}

/// Waits until a byte can be read or a signal came.
void wait_for_input() {
    pollfd ready[] = {{STDIN_FILENO, POLLIN, 0}, {signal_descriptor(), POLLIN, 0}};
    poll(ready, 2, -1);
    uint64_t count;
    if (ready[1].revents != 0) {
        [[maybe_unused]] const ssize_t n = read(signal_descriptor(), &count, sizeof count);
    }
}

}  // namespace

struct LineEditor::State {
    EditLine* editor = nullptr;
    History* history = nullptr;
    bool has_escapes = false;
    std::string prompt;
    std::string held;  // bytes that were read and not used yet
    LineEnd end = LineEnd::text;
    int end_keys = 0;  // sent since then

    ~State() {
        if (editor) el_end(editor);
        if (history) history_end(history);
    }

    bool next_byte(char& byte, size_t most);
    bool handle_signals();
    void stop();
    void redraw();
    bool begins_paste();
    std::string read_paste();

    static State& of(EditLine* editor) {
        State* state = nullptr;
        el_get(editor, EL_CLIENTDATA, &state);
        return *state;
    }
    static char* show_prompt(EditLine* editor) { return of(editor).prompt.data(); }
    static int read_character(EditLine* editor, wchar_t* out);
    static unsigned char insert_paste(EditLine* editor, int);
};

/// Draws the line anew, from the beginning of the row that the cursor is in.
void LineEditor::State::redraw() {
    Editing::write_error_free(has_escapes ? "\r\x1b[J" : "\n");
    el_set(editor, EL_REFRESH);
}

/// As if nobody had caught SIGTSTP; returns when the process goes on.
void LineEditor::State::stop() {
    el_set(editor, EL_PREP_TERM, 0);
    if (has_escapes) Editing::write_error_free(kPasteOff);
    struct sigaction by_default {
    }, ours;
    by_default.sa_handler = SIG_DFL;
    sigemptyset(&by_default.sa_mask);
    sigaction(SIGTSTP, &by_default, &ours);
    raise(SIGTSTP);
    sigaction(SIGTSTP, &ours, nullptr);
}

/// False: the line is at its end.
bool LineEditor::State::handle_signals() {
    if (end_wanted()) {
        end = LineEnd::ended;
        return false;
    }
    if (interrupted().exchange(false)) {
        held.clear();  // the rest of a paste
        end = LineEnd::interrupted;
        return false;
    }
    if (stop_wanted.exchange(false)) {
        stop();
        has_continued = true;
    }
    if (has_continued.exchange(false)) {
        el_set(editor, EL_PREP_TERM, 0);
        el_set(editor, EL_PREP_TERM, 1);
        if (has_escapes) Editing::write_error_free(kPasteOn);
        el_resize(editor);
        redraw();
    }
    if (has_resized.exchange(false)) {
        el_resize(editor);
        redraw();
    }
    return true;
}

/// The next byte of the input; at most `most` are taken from the terminal at once. False at the
/// end of the line or of the input.
bool LineEditor::State::next_byte(char& byte, size_t most) {
    if (end != LineEnd::text) return false;
    while (held.empty()) {
        wait_for_input();
        if (!handle_signals()) return false;
        pollfd ready{STDIN_FILENO, POLLIN, 0};
        if (poll(&ready, 1, 0) != 1) continue;
        char piece[kMostBytes];
        const ssize_t n = ::read(STDIN_FILENO, piece, std::min(most, sizeof piece));
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) {
            end = LineEnd::ended;
            return false;
        }
        held.assign(piece, size_t(n));
    }
    byte = held.front();
    held.erase(0, 1);
    return true;
}

int LineEditor::State::read_character(EditLine* editor, wchar_t* out) {
    State& state = of(editor);
    std::string bytes;
    CodePoint point{};
    while (bytes.empty() || point.state == CodePoint::State::cut) {
        char byte;
        if (!state.next_byte(byte, 1)) {
            *out = kEndKey;
            return state.end_keys++ < kMostEndKeys ? 1 : -1;
        }
        if (bytes.empty() && signal_of_key(byte)) continue;
        if (bytes.empty() && byte == kPasteBegin[0] && state.begins_paste()) {
            *out = kPasteKey;
            return 1;
        }
        bytes += byte;
        point = code_point_at(bytes, 0);
    }
    if (point.bytes < bytes.size()) state.held.insert(0, bytes.substr(point.bytes));
    *out = point.value == char32_t(kPasteKey) ? 0xfffd : wchar_t(point.value);
    return 1;
}

/// Whether the rest of kPasteBegin follows the Escape that was read; it is taken then.
bool LineEditor::State::begins_paste() {
    const std::string_view rest = kPasteBegin.substr(1);
    while (has_escapes && held.size() < rest.size() && rest.starts_with(held)) {
        pollfd ready{STDIN_FILENO, POLLIN, 0};
        if (poll(&ready, 1, kMsInKey) != 1) break;
        char piece[kPasteBegin.size()];
        const ssize_t n = ::read(STDIN_FILENO, piece, rest.size() - held.size());
        if (n <= 0) break;
        held.append(piece, size_t(n));
    }
    if (!has_escapes || !held.starts_with(rest)) return false;
    held.erase(0, rest.size());
    return true;
}

/// What comes until the end of a paste.
std::string LineEditor::State::read_paste() {
    std::string text;
    for (char byte; !text.ends_with(kPasteEnd);) {
        if (!next_byte(byte, kMostBytes)) return {};
        text += byte;
    }
    text.resize(text.size() - kPasteEnd.size());
    return text;
}

unsigned char LineEditor::State::insert_paste(EditLine* editor, int) {
    State& state = of(editor);
    const std::string text = pasted_text(state.read_paste());
    if (!text.empty() && el_insertstr(editor, text.c_str()) != 0) return CC_ERROR;
    return CC_REFRESH;
}

LineEditor::LineEditor(bool has_escapes) : state_(std::make_unique<State>()) {
    // libedit measures and writes characters by the locale; the rest of the program has none.
    if (!setlocale(LC_CTYPE, "C.UTF-8")) setlocale(LC_CTYPE, "");
    State& s = *state_;
    s.has_escapes = has_escapes;
    s.editor = el_init("hf-run", stdin, stdout, stderr);
    s.history = history_init();
    if (!s.editor || !s.history) throw Error("the terminal cannot be used for a chat");
    HistEvent event;
    history(s.history, &event, H_SETSIZE, kHistoryLines);
    history(s.history, &event, H_SETUNIQUE, 1);
    el_set(s.editor, EL_CLIENTDATA, &s);
    el_set(s.editor, EL_PROMPT, State::show_prompt);
    el_set(s.editor, EL_EDITOR, "emacs");
    el_set(s.editor, EL_SIGNAL, 0);
    el_set(s.editor, EL_HIST, history, s.history);
    el_set(s.editor, EL_GETCFN, State::read_character);
    // el_set would keep copies of the names for ever
    el_wset(s.editor, EL_ADDFN, L"hf-paste", L"Insert what is pasted", State::insert_paste);
    el_source(s.editor, nullptr);  // ~/.editrc: other keys, vi mode
    el_set(s.editor, EL_SETTY, "-d", "-isig", "-ixon",
           nullptr);  // while editing: see signal_of_key
    el_wset(s.editor, EL_BIND, kPasteKeyName, L"hf-paste", nullptr);
    el_wset(s.editor, EL_BIND, L"-a", kPasteKeyName, L"hf-paste", nullptr);  // vi's command mode
    el_set(s.editor, EL_BIND, kEndKeyName, "ed-newline", nullptr);
    el_set(s.editor, EL_BIND, "-a", kEndKeyName, "ed-newline", nullptr);
}

LineEditor::~LineEditor() = default;

Line LineEditor::read(const std::string& prompt) {
    State& s = *state_;
    s.prompt = prompt;
    s.end = LineEnd::text;
    s.end_keys = 0;
    interrupted() = end_wanted();
    if (tcgetattr(STDIN_FILENO, &modes_before) != 0) return {LineEnd::ended, {}};
    el_resize(s.editor);
    Editing editing(s.has_escapes);
    el_set(s.editor, EL_PREP_TERM, 1);  // before the prompt is seen: what is typed then is a key
    int count = 0;
    const char* text = el_gets(s.editor, &count);
    if (!text && s.end == LineEnd::text) s.end = LineEnd::closed;  // Ctrl-D
    if (!text) Editing::write_error_free("\n");
    std::string line(text ? text : "");
    if (line.ends_with('\n')) line.pop_back();
    return {s.end, terminal_text(line)};
}

void LineEditor::remember(const std::string& line) {
    HistEvent event;
    history(state_->history, &event, H_ENTER, line.c_str());
}

void restore_terminal() {
    if (!is_editing.exchange(false)) return;
    tcsetattr(STDIN_FILENO, TCSANOW, &modes_before);
    if (sends_escapes) Editing::write_error_free(kPasteOff);
}

std::string pasted_text(std::string text) {
    std::ranges::replace(text, '\r', '\n');
    text.resize(text.find_last_not_of('\n') + 1);
    return terminal_text(text);
}

std::string terminal_text(std::string_view text) {
    std::string shown;
    for (size_t i = 0; i < text.size();) {
        const CodePoint point = code_point_at(text, i);
        const char32_t c = point.value;
        const bool is_control = (c < ' ' && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0);
        append_utf8(shown, is_control ? 0xfffd : c);
        i += point.bytes;
    }
    return shown;
}

}  // namespace hf
