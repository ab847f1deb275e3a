// Chat templates: a conversation to the text a model was trained on. Templates are recognised and
// have a row here; their Jinja is not interpreted.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/tokenizer.h"

namespace hf {

/// A function that the model wants called.
struct ToolCall {
    std::string name;
    std::string arguments;  // JSON, an object
};

struct ChatMessage {
    std::string role;  // system, user, assistant, tool
    std::string content;
    std::optional<std::string> reasoning;   // of an assistant; none: it may stand in the content
    std::vector<ToolCall> tool_calls = {};  // of an assistant
};

struct ChatOptions {
    bool add_generation_prompt = true;    // end with the header of the answer
    std::optional<bool> thinking;         // none: the template's own default
    std::vector<std::string> tools = {};  // JSON, one function each, as templates take them
    std::string date = "26 Jul 2024";  // "Today Date" of llama3.1; this one is its template's own
};

/// What stands around a turn: tokens, some of which a template may not have, and texts.
struct TurnMarks {
    std::string_view text_begin;  // token, once
    std::string_view begin;       // token; the role follows
    std::string_view role_end;    // token
    std::string_view behind_role;
    std::string_view end;  // token; the message came before
    std::string_view behind_end;
};

struct ToolStyle;    // chat_tools.h
struct AnswerPlace;  // chat_answers.h

/// One row: a template this program knows.
struct ChatTemplate {
    std::string_view name;
    /// True for the text of a template that this row renders. Rows are asked in order.
    bool (*recognises)(std::string_view template_text);
    std::string_view architecture = {};  // models of it without a template use this row
    const TurnMarks* marks;
    std::string_view default_system = {};  // of a conversation that begins without a system message
    bool trims_content = false;            // white space around a message is dropped
    std::optional<bool> thinking = {};     // when the options do not say: on, off, or no block
    bool opens_thinking = true;  // with thinking on, the prompt ends inside a <think> block
    /// Appends what an assistant's turn holds and returns the answer in it; see chat_answers.h.
    std::string_view (*answer)(const ChatTemplate&, const AnswerPlace&, std::vector<ChatPiece>&);
    const ToolStyle* tools = nullptr;  // null: tools are refused
    bool is_strict = false;   // refuses a system message after the first, and no user message
    bool shows_date = false;  // the system message begins with dates
};

/// All rows, each once.
std::span<const ChatTemplate> chat_templates();

/// "qwen3.5, qwen3, ...": what template_by_name takes.
std::string template_names();

/// The row of that name, or null.
const ChatTemplate* find_template(std::string_view name);

/// The row of that name.
/// Errors  hf::Error(usage) listing the names that there are
const ChatTemplate& template_by_name(std::string_view name);

/// The row for a model's chat template, or for its architecture if it has none.
///
/// label          names the model in errors
/// template_text  Jinja, may be empty
/// architecture   as the program calls it ("qwen3.5"); used only without a template
/// Returns null when there is neither: such a model takes plain text only
/// Errors  hf::Error for a template that no row recognises
const ChatTemplate* choose_template(std::string_view label, std::string_view template_text,
                                    std::string_view architecture);

/// Renders a conversation, begin of text included where the template has it: nothing is to be put
/// around it. With thinking on the prompt may end inside a <think> block that the model closes,
/// with thinking off behind an empty one; templates that know nothing of thinking add a block only
/// if the options ask for it (Tokenizer::encode then refuses a vocabulary without <think>), and
/// leave out reasoning.
///
/// Errors  hf::Error: no messages; an unknown role; tools where the template has none; tools or
///         arguments that are not JSON; what the template refuses (qwen3.5: a system message after
///         the first, no user message)
std::vector<ChatPiece> render_chat(const ChatTemplate& chat_template,
                                   std::span<const ChatMessage> messages,
                                   const ChatOptions& options = {});

/// Whether a rendered chat ends inside a <think> block, so that the answer begins in it.
/// thinking  as in ChatOptions
bool opens_thinking(const ChatTemplate& chat_template, std::optional<bool> thinking);

/// The pieces as one text.
std::string text_of(std::span<const ChatPiece> pieces);

}  // namespace hf
