// Chats with tiny models whose vocabulary is one token per character: what is fed, what is said.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "libcore/base/error.h"
#include "libcore/run/conversation.h"
#include "libcore/run/prompt.h"
#include "tests/support/data.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;
using Json = nlohmann::json;

namespace {

const std::atomic<bool> kNever{false};
constexpr int32_t kTurnEnd = 251;

/// Printable ASCII and the newline, one token each, and the marks of ChatML: fits 256 rows.
Tokenizer character_tokenizer() {
    Json vocab;
    for (char c = '!'; c <= '~'; ++c) vocab[std::string(1, c)] = c;
    vocab["\u0120"] = ' ';  // as byte-level vocabularies spell the space and the newline
    vocab["\u010a"] = '\n';
    Json added;
    const auto add = [&](int id, const char* content, bool special) {
        added.push_back({{"id", id},
                         {"content", content},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", special}});
    };
    add(250, "<|im_start|>", true);
    add(kTurnEnd, "<|im_end|>", true);
    add(252, "<think>", false);
    add(253, "</think>", false);
    const Json json = {{"added_tokens", added},
                       {"normalizer", nullptr},
                       {"pre_tokenizer",
                        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
                       {"decoder", {{"type", "ByteLevel"}}},
                       {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}};
    return Tokenizer::from_json("characters", json.dump());
}

/// One model of each kind, each with a template that it could have.
struct Pair {
    const char* model;
    const char* chat;
};
constexpr Pair kPairs[] = {{"models/tiny_qwen35_a", "qwen3.5"},
                           {"models/tiny_qwen35_b", "qwen3.5-small"},
                           {"models/tiny_qwen3", "qwen3"},
                           {"models/tiny_llama", "chatml"}};

Setup one_thread(Setup setup) {
    setup.threads = 1;  // the models are tiny
    return setup;
}

struct Chat {
    explicit Chat(const Pair& pair, uint32_t max_tokens = 12, Setup setup = {})
        : m(data_path(pair.model), one_thread(setup)), chat_template(*find_template(pair.chat)) {
        options.sampling.seed = 3;
        options.sampling.repetition_penalty = 1.2f;
        options.sampling.presence_penalty = 0.5f;
        for (int32_t id = 0; id < int32_t(m.model.config.vocab); ++id)
            options.known.push_back(tokenizer.is_known(id));
        options.generate.max_tokens = max_tokens;
        options.generate.stop_ids = {kTurnEnd};
        conversation.emplace(m.session, tokenizer, chat_template, options);
    }

    Turn ask(std::string_view text, const std::atomic<bool>& interrupt = kNever) {
        return conversation->ask(text, {{}, {}, interrupt});
    }
    std::vector<int32_t> prompt_of(std::span<const ChatMessage> messages) const {
        return tokenizer.encode(render_chat(chat_template, messages, {true, options.thinking}));
    }
    /// The prompt of the last answer.
    std::vector<int32_t> last_prompt() const {
        return prompt_of(conversation->messages().first(conversation->messages().size() - 1));
    }
    /// What a session without a past answers.
    std::vector<int32_t> ids_without_cache(uint64_t seed) {
        Session session(m.model, m.device, {512, kv_type_by_name("f32"), 1});
        SamplingOptions sampling = options.sampling;
        sampling.seed = seed;
        Sampler sampler(sampling, options.known);
        return generate(session, last_prompt(), sampler, nullptr, options.generate, {}, {}, kNever)
            .ids;
    }
    bool is_recurrent() const { return m.session.state_layout().recurrent_bytes > 0; }

    Loaded m;
    Tokenizer tokenizer = character_tokenizer();
    const ChatTemplate& chat_template;
    ConversationOptions options;
    std::optional<Conversation> conversation;
};

size_t common_length(std::span<const int32_t> a, std::span<const int32_t> b) {
    return size_t(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::string contents(const Conversation& c) {
    std::string text;
    for (const ChatMessage& m : c.messages()) text += m.role + ":" + m.content + "\n";
    return text;
}

}  // namespace

TEST_CASE(
    "conversation: every turn has the ids it has without a cache, and feeds at most 63 tokens "
    "more than the last answer as it is now written and the new text") {
    for (const Pair& pair : kPairs)
        for (const std::optional<bool> thinking : {std::optional<bool>(), {true}}) {
            CAPTURE(std::string(pair.chat));
            Chat chat(pair, 30);
            chat.options.thinking = thinking;
            chat.conversation.emplace(chat.m.session, chat.tokenizer, chat.chat_template,
                                      chat.options);
            chat.conversation->set_system("Be brief.");
            std::vector<int32_t> before;
            for (const char* text : {"Hello, how are you?", "Hm.", "What is that?"}) {
                CAPTURE(std::string(text));
                const Turn turn = chat.ask(text);
                const auto prompt = chat.last_prompt();
                CHECK(turn.generation.ids == chat.ids_without_cache(*turn.seed));
                CHECK(turn.generation.prompt.tokens + turn.reused == prompt.size());
                // what the old prompt and the new one share ends behind the header of the answer
                const size_t shared = common_length(before, prompt);
                CHECK(turn.generation.prompt.tokens <= prompt.size() - shared + 63);
                if (!before.empty()) CHECK(shared + 10 > before.size());
                before = prompt;
            }
        }
}

TEST_CASE(
    "conversation: changed at any character of its past it has the ids of one without a past") {
    for (const Pair& pair : {kPairs[0], kPairs[2]}) {
        CAPTURE(std::string(pair.model));
        Chat chat(pair, 8);
        chat.conversation->set_system("Be brief.");
        chat.ask("Hello, how are you?");
        const auto spoken = chat.conversation->messages();
        const std::vector<ChatMessage> past(spoken.begin(), spoken.end());
        for (size_t i = 0; i < past.size(); ++i)
            for (size_t at = 0; at <= past[i].content.size(); at += 5) {
                CAPTURE(i);
                CAPTURE(at);
                auto changed = past;
                changed[i].content.insert(at, 1, 'Q');
                chat.conversation->set_messages(changed);
                const Turn turn = chat.ask("And now?");
                CHECK(turn.generation.ids == chat.ids_without_cache(*turn.seed));
                CHECK(turn.generation.prompt.tokens + turn.reused == chat.last_prompt().size());
            }
    }
}

TEST_CASE("conversation: thinking is kept apart from the answer, also when it was cut short") {
    Chat chat(kPairs[0], 20);
    chat.options.thinking = true;  // the prompt opens the block; what random weights never close
    chat.options.known[253] = false;
    chat.options.known[kTurnEnd] = false;
    chat.conversation.emplace(chat.m.session, chat.tokenizer, chat.chat_template, chat.options);
    std::string thinking;
    const Turn turn = chat.conversation->ask("Hello", {[&](AnswerPart part, std::string_view text) {
                                                           CHECK(part == AnswerPart::thinking);
                                                           thinking += text;
                                                       },
                                                       {},
                                                       kNever});
    CHECK(turn.generation.finish == Finish::length);
    CHECK(thinking.size() >= 10);
    CHECK(chat.conversation->messages().back().content.empty());
    CHECK(chat.conversation->messages().back().reasoning == thinking);
    chat.ask("Go on");
    const auto text =
        text_of(render_chat(chat.chat_template, chat.conversation->messages(), {true, {}}));
    CHECK(text.find(thinking) == text.npos);  // the template drops it from past turns
}

TEST_CASE("conversation: trying again feeds next to nothing and draws with the next seed") {
    for (const Pair& pair : kPairs) {
        CAPTURE(std::string(pair.model));
        Chat chat(pair);
        const Turn first = chat.ask("Hello, how are you? Tell me what you know of the sea.");
        const Turn second = chat.conversation->retry({{}, {}, kNever});
        CHECK(second.seed == *first.seed + 1);
        CHECK(second.generation.ids != first.generation.ids);
        CHECK(second.generation.ids == chat.ids_without_cache(*second.seed));
        CHECK(second.generation.prompt.tokens <= (chat.is_recurrent() ? 63 + 20 : 1));
        CHECK(chat.conversation->messages().size() == 2);
    }
}

TEST_CASE("conversation: an interrupted prompt drops the message, an interrupted answer stays") {
    for (const Pair& pair : kPairs) {
        CAPTURE(std::string(pair.model));
        Chat chat(pair, 40);
        chat.options.known[kTurnEnd] = false;
        chat.conversation.emplace(chat.m.session, chat.tokenizer, chat.chat_template, chat.options);
        const std::string question(150, 'x');
        std::atomic<bool> interrupt{false};
        const Turn cut = chat.conversation->ask(
            question, {{}, [&](size_t done, size_t) { interrupt = done >= 128; }, interrupt});
        CHECK(cut.generation.finish == Finish::interrupted);
        CHECK(chat.conversation->messages().empty());
        CHECK_THROWS_WITH_AS(chat.conversation->retry({{}, {}, kNever}),
                             doctest::Contains("no answer"), Error);

        interrupt = false;
        int pieces = 0;
        const Turn partial = chat.conversation->ask(
            question,
            {[&](AnswerPart, std::string_view) { interrupt = ++pieces == 4; }, {}, interrupt});
        CHECK(partial.reused == 128);  // what was fed before the interrupt counts
        CHECK(partial.generation.finish == Finish::interrupted);
        REQUIRE(chat.conversation->messages().size() == 2);
        const auto said = chat.conversation->messages().back();
        CHECK(said.content.size() + said.reasoning.value_or("").size() >= 4);

        const Turn next = chat.ask("And?");
        CHECK(next.generation.ids == chat.ids_without_cache(*next.seed));
        CHECK(next.reused >= 128);
    }
}

TEST_CASE("conversation: a message that does not fit is refused with both numbers, and all stays") {
    Setup setup;
    setup.max_seq = 100;
    for (const Pair& pair : {kPairs[0], kPairs[3]}) {
        Chat chat(pair, 5, setup);
        chat.ask("Hello");
        const std::string before = contents(*chat.conversation);
        const uint32_t used = chat.conversation->context_used();
        const auto prompt = chat.prompt_of(chat.conversation->messages());
        try {
            chat.ask(std::string(100, 'x'));
            FAIL("more than the context");
        } catch (const Error& error) {
            CHECK(error.fault() == Fault::refused);
            CHECK(std::string(error.what()).find("the context holds 100") != std::string::npos);
        }
        CHECK(contents(*chat.conversation) == before);
        CHECK(chat.conversation->context_used() == used);
        CHECK(chat.conversation->context_size() == 100);
        CHECK_THROWS_AS(chat.ask(" \n"), Error);

        // up to the last token it fits, and the answer is one token
        chat.conversation->reset();
        const size_t around = chat.prompt_of(std::vector<ChatMessage>{{"user", "", {}}}).size();
        const Turn full = chat.ask(std::string(100 - around, 'x'));
        CHECK(full.generation.finish == Finish::context);
        CHECK(full.generation.ids.size() == 1);
    }
}

TEST_CASE("conversation: reset keeps the system message; a new one feeds the past again") {
    Chat chat(kPairs[2]);
    chat.conversation->set_system("Be brief.");
    chat.ask("Hello");
    chat.conversation->set_system("Be very brief.");
    CHECK(chat.conversation->messages().size() == 3);
    const Turn turn = chat.ask("Go on");
    CHECK(turn.generation.ids == chat.ids_without_cache(*turn.seed));
    CHECK(turn.reused < 30);
    chat.conversation->reset();
    CHECK(contents(*chat.conversation) == "system:Be very brief.\n");
    chat.conversation->set_system("");
    CHECK(chat.conversation->messages().empty());
    chat.conversation->reset();
    CHECK(chat.ask("Hello").reused < 20);
}

TEST_CASE("conversation: messages from elsewhere are checked before they count") {
    Setup setup;
    setup.max_seq = 100;
    Chat chat(kPairs[0], 5, setup);
    chat.ask("Hello");
    const std::string before = contents(*chat.conversation);
    const ChatMessage user{"user", "a", {}}, assistant{"assistant", "b", {}},
        system{"system", "s", {}};
    ChatMessage call = assistant, tall = user;
    call.tool_calls.push_back({"f", "{}"});
    tall.content = std::string(90, 'x');
    const struct {
        std::vector<ChatMessage> messages;
        const char* says;
    } cases[] = {
        {{assistant}, "message 1"},
        {{user}, "answer is missing"},
        {{user, assistant, user}, "answer is missing"},
        {{user, user}, "message 2"},
        {{user, assistant, system}, "message 3"},
        {{system, assistant}, "message 2"},
        {{{"wizard", "a", {}}}, "message 1"},
        {{user, call}, "message 2"},
        {{tall, assistant}, "the context holds 100"},
    };
    for (const auto& c : cases) {
        CHECK_THROWS_WITH_AS(chat.conversation->set_messages(c.messages), doctest::Contains(c.says),
                             Error);
        CHECK(contents(*chat.conversation) == before);
    }
    for (const auto& good :
         {std::vector<ChatMessage>{}, {system}, {user, assistant}, {system, user, assistant}}) {
        chat.conversation->set_messages(good);
        CHECK(chat.conversation->messages().size() == good.size());
    }
}

TEST_CASE("conversation: turn two of a long chat with the bundled model feeds what is new") {
    Setup setup;
    setup.max_seq = 1024;
    Loaded m(demo_model_path(), setup);
    const Tokenizer tokenizer =
        Tokenizer::from_json("tokenizer.json", read_file(demo_model_path() + "/tokenizer.json"));
    const ChatTemplate& chat = *find_template("chatml-trim");
    ConversationOptions options{{.temperature = 0}, {}, {24, {4091, 4093}}, {}};
    Conversation conversation(m.session, tokenizer, chat, options);
    const std::string text = read_file(demo_model_path() + "/eval.txt").substr(0, 800);
    const Turn one = conversation.ask(text, {{}, {}, kNever});
    CHECK(one.generation.prompt.tokens > 130);
    const size_t answer = tokenizer.encode(conversation.messages().back().content).size();
    const std::string question = "What do cows eat?";
    const Turn two = conversation.ask(question, {{}, {}, kNever});
    const size_t marks = 12;  // around the answer, the question and the next answer
    MESSAGE("turn two fed " << two.generation.prompt.tokens << ", reused " << two.reused);
    CHECK(two.generation.prompt.tokens <= 63 + answer + tokenizer.encode(question).size() + marks);

    Session fresh(m.model, m.device, {1024, kv_type_by_name("f32"), 1});
    Sampler sampler({.temperature = 0});
    const auto past = conversation.messages().first(3);
    CHECK(generate(fresh, tokenizer.encode(render_chat(chat, past)), sampler, nullptr,
                   options.generate, {}, {}, kNever)
              .ids == two.generation.ids);
}
