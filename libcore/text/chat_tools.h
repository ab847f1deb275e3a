// Tools in chat templates: how functions, calls of them and their results are written.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "libcore/text/chat.h"

namespace hf {

/// What a template says about tools.
struct ToolStyle {
    std::string_view before_list, behind_list;  // around the functions, in the system message
    bool system_first;  // what else the system message says comes before that; else behind it
    /// The calls, behind the answer of their turn.
    std::string (*calls)(std::span<const ToolCall>, std::string_view answer);
};

extern const ToolStyle kJsonTools;  // Qwen3: calls are JSON objects
extern const ToolStyle kTagTools;   // Qwen3.5: calls are nested tags

/// The system message with the functions in it.
///
/// tools   JSON, one function each
/// system  what else it says; null: nothing was given
std::string system_with_tools(const ToolStyle& style, std::span<const std::string> tools,
                              const std::string* system);

/// JSON as Python's json.dumps(value, ensure_ascii=False) writes it and Jinja's tojson in
/// templates:
/// ", " and ": " between things, characters beyond ASCII as they are.
/// Errors  hf::Error naming `what`: not JSON, a whole number beyond 64 bits
std::string python_json(std::string_view what, std::string_view json);

}  // namespace hf
