#include "libcore/text/chat_tools.h"

#include <fmt/format.h>
#include <simdjson.h>

#include "libcore/base/error.h"
#include "libcore/text/unicode.h"

namespace hf {
namespace {

namespace dom = simdjson::dom;

/// A parsed text; what it holds lives as long as it does.
class Json {
  public:
    Json(std::string_view what, std::string_view json) {
        if (const auto error = parser_.parse(json.data(), json.size()).get(root_))
            throw Error(fmt::format("{} is not JSON ({}), of {} bytes: {}", what,
                                    simdjson::error_message(error), json.size(),
                                    json.substr(0, 40)));
    }
    dom::element root() const { return root_; }

  private:
    dom::parser parser_;
    dom::element root_;
};

std::string quoted(std::string_view text) {
    constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    std::string out = "\"";
    for (const char c : text) {
        if (const size_t i = kEscaped.find(c); i != kEscaped.npos)
            (out += '\\') += kLetters[i];
        else if (uint8_t(c) < 0x20)
            out += fmt::format("\\u{:04x}", uint8_t(c));
        else
            out += c;
    }
    return out += '"';
}

/// As Python's repr: the shortest digits that give the number back, never without a point.
std::string number(double value) {
    const std::string digits = fmt::format("{}", value);
    return digits.find_first_of(".e") == digits.npos ? digits + ".0" : digits;
}

/// How JSON and Python write the three values that have names.
struct Names {
    std::string_view none, yes, no;
};
constexpr Names kJsonNames = {"null", "true", "false"}, kPythonNames = {"None", "True", "False"};

void write(dom::element value, std::string& out);

std::string scalar(dom::element value, const Names& names) {
    switch (value.type()) {
        case dom::element_type::INT64:
            return fmt::format("{}", int64_t(value));
        case dom::element_type::UINT64:
            return fmt::format("{}", uint64_t(value));
        case dom::element_type::DOUBLE:
            return number(double(value));
        case dom::element_type::BOOL:
            return std::string(bool(value) ? names.yes : names.no);
        default:
            return std::string(names.none);
    }
}

void write_array(dom::array array, std::string& out) {
    out += '[';
    for (std::string_view between = ""; const dom::element item : array) {
        out += std::exchange(between, ", ");
        write(item, out);
    }
    out += ']';
}

void write_object(dom::object object, std::string& out) {
    out += '{';
    for (std::string_view between = ""; const auto& [key, item] : object) {
        out += std::exchange(between, ", ");
        out += quoted(key) + ": ";
        write(item, out);
    }
    out += '}';
}

void write(dom::element value, std::string& out) {
    if (value.is_array())
        write_array(value, out);
    else if (value.is_object())
        write_object(value, out);
    else
        out += value.is_string() ? quoted(value) : scalar(value, kJsonNames);
}

/// A value as a template prints it: text as it is, lists and objects as JSON, the rest as Python.
std::string printed(dom::element value) {
    if (value.is_string()) return std::string(std::string_view(value));
    if (!value.is_array() && !value.is_object()) return scalar(value, kPythonNames);
    std::string out;
    write(value, out);
    return out;
}

std::string what_of(const ToolCall& call) {
    return fmt::format("the arguments of the call of '{}'", call.name);
}

std::string json_calls(std::span<const ToolCall> calls, std::string_view answer) {
    std::string out;
    for (const ToolCall& call : calls) {
        if (&call != calls.data() || !answer.empty()) out += '\n';
        const Json arguments(what_of(call), call.arguments);
        out += fmt::format("<tool_call>\n{{\"name\": \"{}\", \"arguments\": {}}}\n</tool_call>",
                           call.name, printed(arguments.root()));
    }
    return out;
}

std::string tag_calls(std::span<const ToolCall> calls, std::string_view answer) {
    std::string out = trim(answer).empty() ? "" : "\n\n";
    for (const ToolCall& call : calls) {
        if (&call != calls.data()) out += '\n';
        const Json arguments(what_of(call), call.arguments);
        dom::object object;
        if (arguments.root().get(object))
            throw Error(fmt::format("{} must be an object and are {}", what_of(call),
                                    call.arguments.substr(0, 40)));
        out += fmt::format("<tool_call>\n<function={}>\n", call.name);
        for (const auto& [key, value] : object)
            out += fmt::format("<parameter={}>\n{}\n</parameter>\n", key, printed(value));
        out += "</function>\n</tool_call>";
    }
    return out;
}

}  // namespace

const ToolStyle kJsonTools = {
    .before_list =
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
        "<tools>",
    .behind_list =
        "\n</tools>\n\nFor each function call, return a json object with function name "
        "and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
        "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>",
    .system_first = true,
    .calls = json_calls,
};

const ToolStyle kTagTools = {
    .before_list = "# Tools\n\nYou have access to the following functions:\n\n<tools>",
    .behind_list =
        "\n</tools>\n\nIf you choose to call a function ONLY reply in the following format with NO "
        "suffix:\n\n<tool_call>\n<function=example_function_name>\n"
        "<parameter=example_parameter_1>\nvalue_1\n</parameter>\n<parameter=example_parameter_2>\n"
        "This is the value for the second parameter\nthat can span\nmultiple lines\n</parameter>\n"
        "</function>\n</tool_call>\n\n<IMPORTANT>\nReminder:\n- Function calls MUST follow the "
        "specified format: an inner <function=...></function> block must be nested within "
        "<tool_call></tool_call> XML tags\n- Required parameters MUST be specified\n- You may "
        "provide optional reasoning for your function call in natural language BEFORE the function "
        "call, but NOT after\n- If there is no function call available, answer the question like "
        "normal with your current knowledge and do not tell the user about function calls\n"
        "</IMPORTANT>",
    .system_first = false,
    .calls = tag_calls,
};

std::string system_with_tools(const ToolStyle& style, std::span<const std::string> tools,
                              const std::string* system) {
    std::string list(style.before_list);
    for (const std::string& tool : tools) (list += '\n') += python_json("a tool", tool);
    list += style.behind_list;
    if (system && style.system_first) return *system + "\n\n" + list;
    if (system && !system->empty()) return list + "\n\n" + *system;
    return list;
}

std::string python_json(std::string_view what, std::string_view json) {
    std::string out;
    write(Json(what, json).root(), out);
    return out;
}

}  // namespace hf
