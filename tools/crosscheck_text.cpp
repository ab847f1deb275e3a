#include "tools/crosscheck_text.h"

#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libcore/base/error.h"
#include "libcore/file/json.h"
#include "libcore/file/message.h"
#include "tools/device_facts.h"

namespace hf {
namespace {

using Json = nlohmann::ordered_json;
using Kind = JsonReader::Kind;

/// Calls answer(line, its place) for each line that is not blank.
void for_each_line(const std::string& path, const Output& output,
                   const std::function<void(std::string_view, const std::string&)>& answer) {
    LineReader lines(path);
    while (const auto line = lines.next()) {
        if (line->find_first_not_of(" \t\r") != line->npos) answer(*line, lines.place());
        if (output.is_closed()) return;
    }
}

/// The JSON of a line; what is wrong with it is said with its place.
struct JsonLine : JsonReader {
    JsonLine(std::string_view text, const std::string& place)
        : JsonReader(text, place), where(place) {}
    template <class... Args>
    [[noreturn]] void refuse(fmt::format_string<Args...> what, Args&&... args) const {
        fail_file(where, what, std::forward<Args>(args)...);
    }
    const std::string& where;
};

/// True when the value is null, which is skipped then: it counts as absent.
bool skip_null(JsonLine& json) {
    const bool is_null = json.peek() == Kind::null;
    if (is_null) json.skip();
    return is_null;
}

bool read_flag(JsonLine& json, const std::string& key) {
    const std::string_view word = json.raw();
    if (word != "true" && word != "false")
        json.refuse("\"{}\" is {}, neither true nor false", key, shown(word));
    return word == "true";
}

std::string read_hex(JsonLine& json) {
    const std::string hex = json.string();
    const auto digit = [&](size_t i) {
        const size_t value = std::string_view("0123456789abcdefABCDEF").find(hex[i]);
        if (value == std::string_view::npos)
            json.refuse("\"bytes_hex\" holds {}", shown(hex.substr(i, 1)));
        return value < 16 ? value : value - 6;
    };
    if (hex.size() % 2 != 0) json.refuse("\"bytes_hex\" has {} digits, an odd number", hex.size());
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2) bytes += char(digit(i) << 4 | digit(i + 1));
    return bytes;
}

struct TextLine {
    std::optional<std::string> text;
    EncodeOptions options;
};

TextLine read_text_line(JsonLine& json) {
    TextLine line;
    json.object([&](const std::string& key) {
        const bool is_text = key == "text", is_hex = key == "bytes_hex";
        if ((is_text || is_hex) && line.text)
            json.refuse("has more than one text; give \"text\" or \"bytes_hex\", once");
        if (is_text)
            line.text = json.string();
        else if (is_hex)
            line.text = read_hex(json);
        else if (skip_null(json))
            return;
        else if (key == "parse_special")
            line.options.parse_special = read_flag(json, key);
        else if (key == "add_special")
            line.options.add_special = read_flag(json, key);
        else
            json.skip();
    });
    if (!line.text) json.refuse("has neither \"text\" nor \"bytes_hex\"");
    return line;
}

/// {"name", "arguments"}, or such a one as "function" inside another object.
void read_tool_call(JsonLine& json, ToolCall& call) {
    json.object([&](const std::string& key) {
        if (key == "function")
            read_tool_call(json, call);
        else if (key == "name")
            call.name = json.string();
        else if (key == "arguments")
            call.arguments = json.raw();
        else
            json.skip();
    });
}

ChatMessage read_message(JsonLine& json) {
    ChatMessage m;
    json.object([&](const std::string& key) {
        if (skip_null(json))
            return;
        else if (key == "role")
            m.role = json.string();
        else if (key == "content")
            m.content = json.string();
        else if (key == "reasoning_content")
            m.reasoning = json.string();
        else if (key == "tool_calls")
            json.array([&] { read_tool_call(json, m.tool_calls.emplace_back()); });
        else
            json.skip();
    });
    return m;
}

struct ChatLine {
    std::optional<std::vector<ChatMessage>> messages;
    ChatOptions options;
    std::string unknown;  // an option that there is not
};

void read_options(JsonLine& json, ChatLine& line) {
    ChatOptions& o = line.options;
    json.object([&](const std::string& key) {
        if (skip_null(json)) return;
        if (key == "add_generation_prompt") {
            o.add_generation_prompt = read_flag(json, key);
        } else if (key == "enable_thinking") {
            o.thinking = read_flag(json, key);
        } else if (key == "date_string") {
            o.date = json.string();
        } else if (key == "tools") {
            json.array([&] { o.tools.emplace_back(json.raw()); });
        } else {
            line.unknown = key;
            json.skip();
        }
    });
}

ChatLine read_chat_line(JsonLine& json) {
    ChatLine line;
    json.object([&](const std::string& key) {
        if (skip_null(json)) return;
        if (key == "messages") {
            line.messages.emplace();
            json.array([&] { line.messages->push_back(read_message(json)); });
        } else if (key == "options") {
            read_options(json, line);
        } else {
            json.skip();
        }
    });
    if (!line.messages) json.refuse("has no \"messages\"");
    return line;
}

Json render(const Tokenizer& tokenizer, const ChatTemplate& chat_template, const ChatLine& line) {
    if (!line.unknown.empty())
        return {{"error", fmt::format("the option {} is not known here; known are "
                                      "add_generation_prompt, enable_thinking, date_string, tools",
                                      shown(line.unknown))}};
    try {
        const auto pieces = render_chat(chat_template, *line.messages, line.options);
        return {{"text", text_of(pieces)}, {"ids", tokenizer.encode(pieces)}};
    } catch (const Error& error) {
        return {{"error", error.what()}};
    }
}

}  // namespace

void tokenize_lines(const Tokenizer& tokenizer, const std::string& path, Output& output) {
    for_each_line(path, output, [&](std::string_view text, const std::string& place) {
        JsonLine json(text, place);
        const TextLine line = read_text_line(json);
        json.end();
        const std::vector<int32_t> ids = tokenizer.encode(*line.text, line.options);
        output.write(json_line({{"ids", ids}, {"decoded", tokenizer.decode(ids, false)}}));
    });
}

void render_lines(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                  const std::string& path, Output& output) {
    for_each_line(path, output, [&](std::string_view text, const std::string& place) {
        JsonLine json(text, place);
        const ChatLine line = read_chat_line(json);
        json.end();
        output.write(json_line(render(tokenizer, chat_template, line)));
    });
}

}  // namespace hf
