#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "libcore/base/error.h"
#include "libcore/text/chat.h"
#include "libcore/text/chat_answers.h"
#include "libcore/text/chat_tools.h"

namespace hf {
namespace {

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

constexpr std::string_view kQwenSystem =
    "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
constexpr std::string_view kAssistantSystem = "You are a helpful assistant.";
constexpr std::string_view kSmolLmSystem =
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

bool is_llama3(std::string_view text) {
    return has(text, "<|start_header_id|>");
}
bool is_llama31(std::string_view text) {
    return is_llama3(text) && has(text, "Cutting Knowledge Date");
}

bool is_chatml_kin(std::string_view text) {
    return has(text, "<|im_start|>") && !has(text, "<|im_sep|>");
}

bool is_qwen35(std::string_view text) {
    return is_chatml_kin(text) && has(text, "<function=");
}
/// The smaller models think only when asked to. Newer templates of the larger ones say "is
/// undefined or enable_thinking is true", hence the long phrase.
bool is_qwen35_off(std::string_view text) {
    return is_qwen35(text) && has(text, "is defined and enable_thinking is true");
}
bool is_qwen3(std::string_view text) {
    return is_chatml_kin(text) && has(text, "enable_thinking");
}

/// The system message that a template writes itself, when there is none; empty: it writes none.
std::string_view own_system(std::string_view text) {
    constexpr std::string_view kTurn = "<|im_start|>system", kNoText = "'\"{<";
    for (size_t at = text.find(kTurn); at != text.npos; at = text.find(kTurn, at + 1))
        for (const std::string_view newline : {"\n", "\\n"}) {
            std::string_view behind = text.substr(at + kTurn.size());
            if (!behind.starts_with(newline)) continue;
            behind.remove_prefix(newline.size());
            if (behind.empty() || kNoText.find(behind[0]) != kNoText.npos) continue;
            return behind.substr(0, behind.find("<|im_end|>"));
        }
    return {};
}

constexpr std::string_view kNoSystem;

/// ChatML with this system message of its own, and nothing about thinking.
template <const std::string_view& system>
bool is_chatml(std::string_view text) {
    return is_chatml_kin(text) && !has(text, "think") && own_system(text) == system;
}
bool is_trimming_chatml(std::string_view text) {
    return is_chatml<kNoSystem>(text) && (has(text, "|trim") || has(text, "| trim"));
}

constexpr TurnMarks kChatml = {
    .text_begin = "",
    .begin = "<|im_start|>",
    .role_end = "",
    .behind_role = "\n",
    .end = "<|im_end|>",
    .behind_end = "\n",
};
constexpr TurnMarks kLlama3 = {
    .text_begin = "<|begin_of_text|>",
    .begin = "<|start_header_id|>",
    .role_end = "<|end_header_id|>",
    .behind_role = "\n\n",
    .end = "<|eot_id|>",
    .behind_end = "",
};

const ChatTemplate kTemplates[] = {
    {
        .name = "llama3.1",
        .recognises = is_llama31,
        .marks = &kLlama3,
        .trims_content = true,
        .answer = whole_answer,
        .shows_date = true,
    },
    {
        .name = "llama3",
        .recognises = is_llama3,
        .marks = &kLlama3,
        .trims_content = true,
        .answer = whole_answer,
    },
    {
        .name = "qwen3.5-small",
        .recognises = is_qwen35_off,
        .marks = &kChatml,
        .trims_content = true,
        .thinking = false,
        .answer = qwen35_answer,
        .tools = &kTagTools,
        .is_strict = true,
    },
    {
        .name = "qwen3.5",
        .recognises = is_qwen35,
        .architecture = "qwen3.5",
        .marks = &kChatml,
        .trims_content = true,
        .thinking = true,
        .answer = qwen35_answer,
        .tools = &kTagTools,
        .is_strict = true,
    },
    {
        .name = "qwen3",
        .recognises = is_qwen3,
        .architecture = "qwen3",
        .marks = &kChatml,
        .opens_thinking = false,
        .answer = qwen3_answer,
        .tools = &kJsonTools,
    },
    {
        .name = "qwen2.5",
        .recognises = is_chatml<kQwenSystem>,
        .architecture = "qwen2",
        .marks = &kChatml,
        .default_system = kQwenSystem,
        .answer = whole_answer,
    },
    {
        .name = "qwen2",
        .recognises = is_chatml<kAssistantSystem>,
        .marks = &kChatml,
        .default_system = kAssistantSystem,
        .answer = whole_answer,
    },
    {
        .name = "smollm2",
        .recognises = is_chatml<kSmolLmSystem>,
        .marks = &kChatml,
        .default_system = kSmolLmSystem,
        .answer = whole_answer,
    },
    {
        .name = "chatml-trim",
        .recognises = is_trimming_chatml,
        .marks = &kChatml,
        .trims_content = true,
        .answer = whole_answer,
    },
    {
        .name = "chatml",
        .recognises = is_chatml<kNoSystem>,
        .marks = &kChatml,
        .answer = whole_answer,
    },
};

}  // namespace

std::span<const ChatTemplate> chat_templates() {
    return kTemplates;
}

std::string template_names() {
    std::vector<std::string_view> names;
    for (const ChatTemplate& row : kTemplates) names.push_back(row.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

const ChatTemplate* find_template(std::string_view name) {
    const auto row = std::find_if(std::begin(kTemplates), std::end(kTemplates),
                                  [&](const ChatTemplate& t) { return t.name == name; });
    return row == std::end(kTemplates) ? nullptr : &*row;
}

const ChatTemplate& template_by_name(std::string_view name) {
    if (const ChatTemplate* row = find_template(name)) return *row;
    throw Error(fmt::format("there is no chat template '{}'; known are {}", name.substr(0, 100),
                            template_names()),
                Fault::usage);
}

const ChatTemplate* choose_template(std::string_view label, std::string_view template_text,
                                    std::string_view architecture) {
    for (const ChatTemplate& row : kTemplates) {
        const bool fits = template_text.empty()
                              ? !row.architecture.empty() && row.architecture == architecture
                              : row.recognises(template_text);
        if (fits) return &row;
    }
    if (template_text.empty()) return nullptr;
    throw Error(
        fmt::format("{}: its chat template ({} bytes) is none of those known here; name one "
                    "that fits with --template ({}), or give plain text with --raw",
                    label, template_text.size(), template_names()));
}

}  // namespace hf
