// Rendered conversations against what the models' own templates gave.
#include "libcore/text/chat.h"

#include "libcore/base/error.h"
#include "tests/unit/tokenizer_files.h"

using namespace hf;
using namespace hf::test;

namespace {

/// Stand-ins with what the templates are told apart by; the real ones come with the models.
const std::string kSmall =
    "<|im_start|> <function= {%- if enable_thinking is defined and enable_thinking is true %}";
const std::string kLarge =
    "<|im_start|> <function= {%- if enable_thinking is defined and enable_thinking is false %}";
const std::string kChatml =
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}";

const ChatTemplate& row(const std::string& template_text) {
    const ChatTemplate* found = choose_template("m", template_text, "");
    REQUIRE(found != nullptr);
    return *found;
}

std::vector<ChatMessage> messages_of(const Json& list) {
    std::vector<ChatMessage> messages;
    for (const Json& m : list) {
        messages.push_back({m.at("role"), m.at("content"), std::nullopt});
        if (m.contains("reasoning_content")) messages.back().reasoning = m.at("reasoning_content");
    }
    return messages;
}

ChatOptions options_of(const Json& json) {
    ChatOptions options{.add_generation_prompt = json.value("add_generation_prompt", true),
                        .thinking = {}};
    if (json.contains("enable_thinking")) options.thinking = json.at("enable_thinking").get<bool>();
    return options;
}

std::string rendered(const ChatTemplate& t, std::vector<ChatMessage> messages,
                     ChatOptions options = {}) {
    return text_of(render_chat(t, messages, options));
}

std::string error_of(const ChatTemplate& t, const std::vector<ChatMessage>& messages) {
    try {
        render_chat(t, messages);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

/// Calls f(row of the template, case, "" or the suffix of its fields) for both variants of Qwen3.5.
template <class F>
void for_each_chat(F f) {
    const std::pair<const ChatTemplate&, std::string> variants[] = {{row(kLarge), "_default_on"},
                                                                    {row(kSmall), "_default_off"}};
    const Json cases = read_json(data_path("tokenizers/qwen35_chat.json")).at("cases");
    REQUIRE(cases.size() >= 10);
    for (const auto& [chat_template, suffix] : variants)
        for (const Json& c : cases) {
            CAPTURE(c.at("name").get<std::string>());
            CAPTURE(suffix);
            f(chat_template, c, c.contains("text") ? "" : suffix);
        }
}

bool uses_tools(const Json& c) {
    return c.at("messages").dump().find("\"tool\"") != std::string::npos;
}

}  // namespace

TEST_CASE(
    "chat qwen3.5: conversations render as the models' templates do; those with tools are "
    "refused") {
    for_each_chat([](const ChatTemplate& t, const Json& c, const std::string& suffix) {
        const auto messages = messages_of(c.at("messages"));
        if (uses_tools(c))
            CHECK(error_of(t, messages).find("the role 'tool'") != std::string::npos);
        else
            CHECK(rendered(t, messages, options_of(c.at("options"))) ==
                  c.at("text" + suffix).get<std::string>());
    });
}

TEST_CASE(
    "chat qwen3.5: conversations give the ids of the reference, and no message forges a special "
    "token") {
    const std::string big = big_tokenizer_folder();
    if (big.empty()) return;
    const Tokenizer tokenizer = load_tokenizer(big);
    for_each_chat([&](const ChatTemplate& t, const Json& c, const std::string& suffix) {
        if (uses_tools(c)) return;
        const Json& ids = c.at("ids" + suffix);
        const auto pieces =
            render_chat(t, messages_of(c.at("messages")), options_of(c.at("options")));
        CHECK(tokenizer.encode(pieces) == c.value("ids_content_parse_special_off", ids).get<Ids>());
        CHECK(tokenizer.encode(text_of(pieces)) == ids.get<Ids>());
    });
}

TEST_CASE("chat qwen3.5: what the template refuses is refused") {
    const Json rows = read_json(data_path("tokenizers/qwen35_chat.json")).at("errors");
    REQUIRE(rows.size() == 3);
    for (const Json& c : rows) {
        CAPTURE(c.at("name").get<std::string>());
        CHECK_THROWS_AS(rendered(row(kLarge), messages_of(c.at("messages"))), Error);
    }
    const std::string result = "<tool_response>\n1\n</tool_response>";
    CHECK(error_of(row(kLarge), {{"user", result, {}}}).find("needs a user message") !=
          std::string::npos);
    CHECK(error_of(row(kLarge), {{"wizard", "x", {}}}).find("the role 'wizard'") !=
          std::string::npos);
}

TEST_CASE("chat qwen3.5: reasoning is kept only behind the last user message") {
    const ChatTemplate& t = row(kLarge);
    const ChatOptions closed{.add_generation_prompt = false, .thinking = {}};
    const std::string q = "<|im_start|>user\nq<|im_end|>\n";
    const std::string answer = "<|im_start|>assistant\n<think>\nr\n</think>\n\na<|im_end|>\n";
    const std::string bare = "<|im_start|>assistant\na<|im_end|>\n";
    const ChatMessage user{"user", " q\n", {}};
    for (const ChatMessage& m : {ChatMessage{"assistant", "a", "\nr\n\n"},
                                 ChatMessage{"assistant", "<think>\nr\n</think>\n\na", {}},
                                 ChatMessage{"assistant", "r</think>a", {}}}) {
        CAPTURE(m.content);
        CHECK(rendered(t, {user, m}, closed) == q + answer);
        CHECK(rendered(t, {user, m, user}, closed) == q + bare + q);
    }
    // given apart, it is not looked for in the content
    CHECK(rendered(t, {user, {"assistant", "x</think>a", "r"}}, closed) ==
          q + "<|im_start|>assistant\n<think>\nr\n</think>\n\nx</think>a<|im_end|>\n");
}

TEST_CASE("chat ChatML: turns, and a think block only when the options ask for one") {
    const ChatTemplate& t = row(kChatml);
    const std::vector<ChatMessage> messages = {{"system", "s", {}}, {"user", " u ", {}}};
    const std::string turns = "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\n u <|im_end|>\n";
    const std::string prompt = turns + "<|im_start|>assistant\n";
    CHECK(rendered(t, messages) == prompt);
    CHECK(rendered(t, messages, {.add_generation_prompt = false, .thinking = true}) == turns);
    CHECK(rendered(t, messages, {.thinking = true}) == prompt + "<think>\n");
    CHECK(rendered(t, messages, {.thinking = false}) == prompt + "<think>\n\n</think>\n\n");
    CHECK_THROWS_AS(rendered(t, {}), Error);
}

TEST_CASE("chat: the demo model's template is ChatML that trims") {
    const Json config = read_json(demo_model_path() + "/tokenizer_config.json");
    const ChatTemplate& t = row(config.at("chat_template"));
    CHECK(rendered(t, {{"user", " Hi\n", {}}}) ==
          "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");

    const Tokenizer tokenizer = load_tokenizer(demo_model_path());
    const Ids ids = tokenizer.encode(render_chat(t, std::vector<ChatMessage>{{"user", "Hi", {}}}));
    CHECK(ids == tokenizer.encode("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"));
}

TEST_CASE("chat: a vocabulary without the tokens of the template is refused by their name") {
    Tokenizer t = load_tokenizer(data_path("tokenizers/small_qwen35"));
    CHECK_THROWS_WITH_AS(t.encode(std::vector<ChatPiece>{{"<|turn|>", true}}),
                         doctest::Contains("'<|turn|>'"), Error);
}

TEST_CASE("chat: templates are told apart by their text, else by the architecture") {
    CHECK(row(kSmall).thinking == false);
    CHECK(row(kLarge).thinking == true);
    CHECK(row("<|im_start|><function= enable_thinking is undefined or enable_thinking is true")
              .thinking == true);
    CHECK_FALSE(row(kChatml).thinking);
    CHECK(choose_template("m", "", "qwen3.5") == &row(kLarge));
    CHECK(choose_template("m", "", "llama") == nullptr);
    CHECK(choose_template("m", "", "") == nullptr);
    const std::string unknown[] = {
        "<|start_header_id|>", "{{ messages }}", kChatml + "{% if enable_thinking %}",
        kChatml + "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou are Qwen",
        kChatml + "{% if tools %}"};
    for (const std::string& text : unknown) {
        CAPTURE(text);
        CHECK_THROWS_WITH_AS(choose_template("m", text, "qwen3.5"),
                             doctest::Contains("m: its chat template"), Error);
    }
}
