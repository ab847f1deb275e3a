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

struct ChatMessage {
    std::string role;  // system, user, assistant
    std::string content;
    std::optional<std::string> reasoning;  // of an assistant; none: it may stand in the content
};

struct ChatOptions {
    bool add_generation_prompt = true;  // end with the header of the answer
    std::optional<bool> thinking;       // none: the template's own default
};

/// One row: a template this program knows.
struct ChatTemplate {
    std::string_view name;
    /// True for the text of a template that this row renders. Rows are asked in order.
    bool (*recognises)(std::string_view template_text);
    std::string_view architecture;  // models of it without a template use this row; empty: none do
    bool trims_content;             // white space around a message is dropped
    std::optional<bool> thinking;   // when the options do not say: on, off, or no block at all
    /// Appends the turns; the generation prompt is the same for all rows.
    void (*turns)(const ChatTemplate&, std::span<const ChatMessage>, std::vector<ChatPiece>& out);
};

/// The row for a model's chat template, or for its architecture if it has none.
///
/// label          names the model in errors
/// template_text  Jinja, may be empty
/// architecture   as the program calls it ("qwen3.5"); used only without a template
/// Returns null when there is neither: such a model takes plain text only
/// Errors  hf::Error for a template that no row recognises
const ChatTemplate* choose_template(std::string_view label, std::string_view template_text,
                                    std::string_view architecture);

/// Renders a conversation. With thinking on the prompt ends inside a <think> block that the model
/// closes, with thinking off behind an empty one. ChatML adds neither unless the options ask for it
/// (Tokenizer::encode then refuses a vocabulary without <think>), and leaves out reasoning.
///
/// Errors  hf::Error: no messages; a role other than the three (tool messages are not supported);
///         what the template refuses (qwen3.5: a system message after the first, no user message)
std::vector<ChatPiece> render_chat(const ChatTemplate& chat_template,
                                   std::span<const ChatMessage> messages, ChatOptions options = {});

/// The pieces as one text.
std::string text_of(std::span<const ChatPiece> pieces);

}  // namespace hf
