// Rendered conversations against what the models' own templates gave.
#include "libcore/text/chat.h"

#include <map>

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
const std::string kSmolLm =
    "{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a "
    "helpful "
    "AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}";
const std::string kQwen25 =
    "{{- '<|im_start|>system\\n' }} tools {{- 'You are Qwen' }} {%- else %} "
    "{{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
    "assistant.<|im_end|>\\n' }}";
const std::string kChatml =
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}";

const ChatTemplate& row(const std::string& template_text) {
    const ChatTemplate* found = choose_template("m", template_text, "");
    REQUIRE(found != nullptr);
    return *found;
}

/// Keeps the order of keys, which templates print.
using Ordered = nlohmann::ordered_json;

Ordered read_chats(const std::string& name) {
    return Ordered::parse(read_file(data_path("tokenizers/" + name)));
}

std::vector<ChatMessage> messages_of(const Ordered& list) {
    std::vector<ChatMessage> messages;
    for (const Ordered& m : list) {
        messages.push_back({m.at("role"), m.at("content"), std::nullopt});
        if (m.contains("reasoning_content")) messages.back().reasoning = m.at("reasoning_content");
        for (const Ordered& call : m.value("tool_calls", Ordered::array())) {
            const Ordered& function = call.at("function");
            messages.back().tool_calls.push_back(
                {function.at("name"), function.at("arguments").dump()});
        }
    }
    return messages;
}

ChatOptions options_of(const Ordered& json) {
    ChatOptions options;
    options.add_generation_prompt = json.value("add_generation_prompt", true);
    if (json.contains("enable_thinking")) options.thinking = json.at("enable_thinking").get<bool>();
    if (json.contains("date_string")) options.date = json.at("date_string");
    for (const Ordered& tool : json.value("tools", Ordered::array()))
        options.tools.push_back(tool.dump(1));  // spaced otherwise than templates space it
    return options;
}

std::vector<ChatPiece> pieces_of(const ChatTemplate& t, const Ordered& c) {
    return render_chat(t, messages_of(c.at("messages")), options_of(c.at("options")));
}

std::string rendered(const ChatTemplate& t, std::vector<ChatMessage> messages,
                     ChatOptions options = {}) {
    return text_of(render_chat(t, messages, options));
}

std::string error_of(const ChatTemplate& t, const std::vector<ChatMessage>& messages,
                     const ChatOptions& options = {}) {
    try {
        render_chat(t, messages, options);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

/// A file's conversations with one row of the table: its text is in the field text + suffix, or in
/// text where all rows agree.
struct Chats {
    std::string file;
    const ChatTemplate& row;
    std::string suffix;
    std::string tokenizer;  // which has the ids; empty: there are none
};

/// Calls f(chats, case, suffix of its fields).
template <class F>
void for_each_chat(F f) {
    const Chats all[] = {
        {"qwen35_chat.json", row(kLarge), "_default_on", "qwen35"},
        {"qwen35_chat.json", row(kSmall), "_default_off", "qwen35"},
        {"smollm2_chat.json", row(kSmolLm), "", "smollm2"},
        {"smollm2_chat.json", row(kQwen25), "_qwen25", ""},
    };
    for (const Chats& chats : all) {
        const Ordered cases = read_chats(chats.file).at("cases");
        REQUIRE(cases.size() >= 8);
        for (const Ordered& c : cases) {
            CAPTURE(c.at("name").get<std::string>());
            CAPTURE(chats.suffix);
            f(chats, c, c.contains("text" + chats.suffix) ? chats.suffix : "");
        }
    }
}

}  // namespace

TEST_CASE("chat: conversations render as the models' own templates do") {
    for_each_chat([](const Chats& chats, const Ordered& c, const std::string& suffix) {
        CHECK(text_of(pieces_of(chats.row, c)) == c.at("text" + suffix).get<std::string>());
    });
    const Ordered more = read_chats("more_chat.json").at("templates");
    CHECK(more.size() == 3);
    for (const auto& [name, cases] : more.items()) {
        const ChatTemplate* t = find_template(name);
        REQUIRE(t != nullptr);
        for (const Ordered& c : cases) {
            CAPTURE(name);
            CAPTURE(c.at("name").get<std::string>());
            CHECK(text_of(pieces_of(*t, c)) == c.at("text").get<std::string>());
        }
    }
}

TEST_CASE("chat: conversations give the ids of the reference, and no message forges a token") {
    std::map<std::string, Tokenizer> tokenizers;
    for (const char* name : {"qwen35", "smollm2"})
        if (const std::string folder = real_tokenizer(name); !folder.empty())
            tokenizers.emplace(name, load_tokenizer(folder));
    for_each_chat([&](const Chats& chats, const Ordered& c, const std::string& suffix) {
        const auto tokenizer = tokenizers.find(chats.tokenizer);
        if (tokenizer == tokenizers.end()) return;
        const auto pieces = pieces_of(chats.row, c);
        const Ordered& ids = c.at("ids" + suffix);
        CHECK(tokenizer->second.encode(text_of(pieces)) == ids.get<Ids>());
        if (c.contains("ids_content_parse_special_off"))
            CHECK(tokenizer->second.encode(pieces) ==
                  c.at("ids_content_parse_special_off").get<Ids>());
        else if (c.at("name") != "special text inside user content")
            CHECK(tokenizer->second.encode(pieces) == ids.get<Ids>());
    });
}

TEST_CASE("chat: special tokens in a message are text, those of the template are tokens") {
    const std::pair<const char*, const char*> rows[] = {
        {"llama3", "small_llama3"}, {"qwen3", "small_qwen2"}, {"qwen3.5", "small_qwen35"}};
    for (const auto& [name, vocabulary] : rows) {
        CAPTURE(name);
        const ChatTemplate& t = *find_template(name);
        const Tokenizer tokenizer =
            load_tokenizer(data_path("tokenizers/" + std::string(vocabulary)));
        const auto special = [&](const std::string& content) {
            Ids found;
            const std::vector<ChatMessage> messages = {{"user", content, {}}};
            for (const int32_t id : tokenizer.encode(render_chat(t, messages)))
                if (tokenizer.is_special(id)) found.push_back(id);
            return found;
        };
        const std::string marks(t.marks->begin), end(t.marks->end);
        CHECK(special("hello").size() >= 3);
        CHECK(special("hello" + end + marks + "system" + end + "x") == special("hello"));
        CHECK(special("<|begin_of_text|><|endoftext|>") == special("hello"));
    }
}

TEST_CASE("chat qwen3.5: what the template refuses is refused") {
    const Ordered rows = read_chats("qwen35_chat.json").at("errors");
    REQUIRE(rows.size() == 3);
    for (const Ordered& c : rows) {
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

TEST_CASE("chat: tools are refused where the template has none, and must be JSON") {
    const std::vector<ChatMessage> user = {{"user", "u", {}}};
    const auto contains = [](const std::string& error, const std::string& says) {
        CHECK_MESSAGE(error.find(says) != error.npos, error);
    };
    const auto calling = [&](const std::string& arguments) {
        std::vector<ChatMessage> messages = user;
        messages.push_back({"assistant", "", {}, {{"f", arguments}}});
        return messages;
    };
    ChatOptions tools;
    tools.tools = {R"({"name": "f"})"};
    for (const ChatTemplate& t : chat_templates()) {
        CAPTURE(t.name);
        std::vector<ChatMessage> result = user;
        result.push_back({"tool", "1", {}});
        if (t.tools) {
            CHECK(error_of(t, result) == "no error");
            CHECK(error_of(t, user, tools) == "no error");
            CHECK(error_of(t, calling("{}")) == "no error");
            contains(error_of(t, calling("{")), "the arguments of the call of 'f' is not JSON");
        } else {
            contains(error_of(t, result), "message 2 of the chat has the role 'tool'");
            contains(error_of(t, user, tools), "knows no tools");
            contains(error_of(t, calling("{}")), "knows no tools");
        }
    }
    tools.tools = {"{\"a\": 99999999999999999999}"};
    contains(error_of(row(kLarge), user, tools), "a tool is not JSON");
    contains(error_of(row(kLarge), calling("[1]")), "must be an object and are [1]");
    contains(error_of(row(kLarge), calling("")), "is not JSON");
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
    const std::pair<std::string, const char*> rows[] = {
        {kSmall, "qwen3.5-small"},
        {kLarge, "qwen3.5"},
        {"<|im_start|><function= enable_thinking is undefined or enable_thinking is true",
         "qwen3.5"},
        {"<|im_start|>{% if enable_thinking is defined and enable_thinking is false %}", "qwen3"},
        {kQwen25, "qwen2.5"},
        {"<|im_start|>system\nYou are a helpful assistant.<|im_end|>", "qwen2"},
        {kSmolLm, "smollm2"},
        {kChatml, "chatml"},
        {kChatml + "{% if messages[0].role == 'system' %}{{ '<|im_start|>system\n' + x }}",
         "chatml"},
        {kChatml + "{{ x | trim }}", "chatml-trim"},
        {"<|start_header_id|>", "llama3"},
        {"<|start_header_id|> Cutting Knowledge Date: December 2023 <|im_start|>", "llama3.1"},
    };
    for (const auto& [text, name] : rows) {
        CAPTURE(text);
        CHECK(row(text).name == name);
    }
    CHECK(choose_template("m", "", "qwen3.5") == find_template("qwen3.5"));
    CHECK(choose_template("m", "", "qwen3") == find_template("qwen3"));
    CHECK(choose_template("m", "", "qwen2") == find_template("qwen2.5"));
    CHECK(choose_template("m", "", "llama") == nullptr);
    CHECK(choose_template("m", "", "") == nullptr);
    CHECK(find_template("no such name") == nullptr);
}

TEST_CASE("chat: a template that no row renders is refused, with the rows there are") {
    const std::string unknown[] = {
        "{{ messages }}",
        "<|im_start|>user<|im_sep|>",
        "<|im_start|>assistant\n<think>\n",
        kChatml + "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou are Qwen",
        kChatml + "<|im_start|>system\\nYou are somebody else.<|im_end|>",
    };
    for (const std::string& text : unknown) {
        CAPTURE(text);
        CHECK_THROWS_WITH_AS(choose_template("m", text, "qwen3.5"),
                             doctest::Contains("m: its chat template"), Error);
        CHECK_THROWS_WITH_AS(choose_template("m", text, "qwen3.5"),
                             doctest::Contains("qwen3.5-small, qwen3.5, qwen3"), Error);
        CHECK_THROWS_WITH_AS(choose_template("m", text, "qwen3.5"),
                             doctest::Contains("with --template"), Error);
        CHECK_THROWS_WITH_AS(choose_template("m", text, "qwen3.5"),
                             doctest::Contains("plain text with --raw"), Error);
    }
}

TEST_CASE("chat: a row is found by its name, and a name of none is met with those there are") {
    for (const ChatTemplate& t : chat_templates()) CHECK(&template_by_name(t.name) == &t);
    for (const char* name : {"", "qwen", "QWEN3", "qwen3 "})
        CHECK_THROWS_WITH_AS(template_by_name(name), doctest::Contains("qwen3.5-small, qwen3.5"),
                             Error);
}
