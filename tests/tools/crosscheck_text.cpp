// hf-crosscheck for scripts: lines of JSON in, lines of JSON out, against the tokenizer fixtures.
#include "tests/tools/process.h"
#include "tests/tools/texts.h"
#include "tests/unit/temp_folder.h"
#include "tests/unit/tokenizer_files.h"

using namespace hf::test;

namespace {

Outcome hf_crosscheck(std::vector<std::string> arguments, RunOptions options = {}) {
    arguments.insert(arguments.begin(), HF_CROSSCHECK);
    return run_process(arguments, options);
}

using Ordered = nlohmann::ordered_json;  // keeps the order of keys, which templates print

/// Answers to lines of a file, one object each.
std::vector<Json> answers(std::vector<std::string> arguments, const std::string& lines) {
    const TempFolder folder;
    folder.write("lines", lines);
    arguments.push_back(folder / "lines");
    const Outcome run = hf_crosscheck(arguments);
    CAPTURE(run.err);
    CHECK(run.code == 0);
    CHECK(run.err.empty());
    std::vector<Json> objects;
    for (const std::string& line : lines_of(run.out)) objects.push_back(Json::parse(line));
    return objects;
}

/// What a line asks, and what must come back.
struct Question {
    Json line, ids, decoded;
};

/// Each case with the flags as they are by themselves, and the other way.
std::vector<Question> questions_of(const Json& c) {
    Json text;
    const char* field = c.contains("bytes_hex") ? "bytes_hex" : "text";
    text[field] = c.at(field);
    Json off = text, around = text;
    off["parse_special"] = false;
    around["add_special"] = true;
    const Json& ids = c.at("ids");
    return {{text, ids, c.at("decoded")},
            {off, c.value("ids_parse_special_off", ids), Json()},
            {around, c.value("ids_add_special", ids), Json()}};
}

}  // namespace

TEST_CASE("hf-crosscheck: --tokenize gives the reference's ids for every fixture, in every form") {
    for (const std::string& folder : tokenizer_folders()) {
        std::vector<Question> questions;
        const Json cases = read_json(folder + "/cases.json").at("cases");
        for (const Json& c : cases)
            for (Question& q : questions_of(c)) questions.push_back(std::move(q));
        std::string lines;
        for (const Question& q : questions) lines += q.line.dump() + "\n";
        for (const char* form : {"", "/tokenizer.json", "/vocab.gguf"}) {
            if (!std::ifstream(folder + form)) continue;  // the real ones have no GGUF file
            CAPTURE(folder + form);
            const auto got = answers({folder + form, "--tokenize"}, lines);
            REQUIRE(got.size() == questions.size());
            for (size_t i = 0; i < got.size(); ++i) {
                CAPTURE(questions[i].line.dump());
                CHECK(got[i].size() == 2);
                CHECK(got[i].at("ids") == questions[i].ids);
                if (!questions[i].decoded.is_null())
                    CHECK(got[i].at("decoded") == questions[i].decoded);
            }
        }
    }
}

TEST_CASE("hf-crosscheck: --render-chat gives the reference's text and ids, or its refusal") {
    const struct {
        const char *file, *suffix, *chat_template, *tokenizer;
    } rows[] = {
        {"qwen35_chat.json", "_default_on", "qwen3.5", "qwen35"},
        {"qwen35_chat.json", "_default_off", "qwen3.5-small", "qwen35"},
        {"smollm2_chat.json", "", "smollm2", "smollm2"},
    };
    for (const auto& row : rows) {
        const Ordered fixture = Ordered::parse(read_file(data_path("tokenizers/") + row.file));
        std::vector<Ordered> cases = fixture.at("cases");
        if (fixture.contains("errors"))
            for (const Ordered& c : fixture.at("errors")) cases.push_back(c);
        std::string lines;
        for (const Ordered& c : cases) lines += c.dump() + "\n";  // more keys than are needed
        // The small vocabulary has Qwen's tokens, so text can be checked without the real one.
        const std::string real = real_tokenizer(row.tokenizer);
        const std::string folder = real.empty() ? data_path("tokenizers/small_qwen35") : real;
        const auto got = answers({folder, "--template", row.chat_template, "--render-chat"}, lines);
        REQUIRE(got.size() == cases.size());
        for (size_t i = 0; i < cases.size(); ++i) {
            const Ordered& c = cases[i];
            CAPTURE(c.at("name").get<std::string>());
            CHECK(got[i].contains("error") == c.contains("error"));
            if (c.contains("error")) continue;
            const auto field = [&](const std::string& name) {
                return c.contains(name + row.suffix) ? c.at(name + row.suffix) : c.at(name);
            };
            CHECK(got[i].at("text") == field("text"));
            if (real.empty()) continue;
            const std::string untrusted = "ids_content_parse_special_off";
            if (c.contains(untrusted))
                CHECK(got[i].at("ids") == c.at(untrusted));
            else if (c.at("name") != "special text inside user content")
                CHECK(got[i].at("ids") == field("ids"));
        }
    }
}

TEST_CASE("hf-crosscheck: a model's own chat template is used; no message forges a token") {
    const auto got = answers({demo_model_path(), "--render-chat"},
                             R"({"messages": [{"role": "user", "content": " Hi\n"}]})"
                             "\n\n"
                             R"({"messages": [{"role": "user", "content": "<|im_end|>"}], )"
                             R"("options": {"add_generation_prompt": false}})"
                             "\r\n"
                             R"({"messages": [], "options": null})"
                             "\n"
                             R"({"messages": [{"role": "user", "content": "x"}], )"
                             R"("options": {"enable_thinkin": true}})");  // the last newline lacks
    REQUIRE(got.size() == 4);
    CHECK(got[0].at("text") == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    const hf::Tokenizer tokenizer = load_tokenizer(demo_model_path());
    CHECK(got[0].at("ids") == tokenizer.encode(got[0].at("text").get<std::string>()));
    const Ids ids = got[1].at("ids");
    CHECK(std::count(ids.begin(), ids.end(), tokenizer.id_of("<|im_end|>").value()) == 1);
    CHECK(contains(got[2].at("error"), "at least 1 message"));
    CHECK(contains(got[3].at("error"), "'enable_thinkin'"));
}

TEST_CASE("hf-crosscheck: the answers before a wrong line are not lost; a pipe is '-'") {
    const Outcome run =
        hf_crosscheck({"--tokenize", "-"}, {.input = "{\"text\": \"a\"}\n{\"text\": "});
    CHECK(run.code == 1);
    CHECK(lines_of(run.out).size() == 1);
    CHECK(contains(run.err, "standard input: line 2: unusable JSON at byte 9"));
}

TEST_CASE("hf-crosscheck: hostile lines are refused with their number") {
    const std::string deep(100000, '[');
    const std::pair<std::string, const char*> cases[] = {
        {"text", "line 3: unusable JSON"},
        {"[]", "line 3: unusable JSON at byte 0"},
        {"{}", "line 3: has neither"},
        {R"({"text": 1})", "line 3: unusable JSON at byte 9"},
        {R"({"text": "a"} x)", "line 3: unusable JSON at byte 14: text behind the end"},
        {R"({"text": "a", "bytes_hex": "61"})", "line 3: has more than one text"},
        {R"({"text": "a", "text": "b"})", "line 3: has more than one text"},
        {R"({"bytes_hex": "6"})", "1 digits"},
        {R"({"bytes_hex": "6\n"})", "holds '?'"},
        {R"({"bytes_hex": "0g"})", "holds 'g'"},
        {R"({"text": "a", "parse_special": 1})", "line 3: \"parse_special\" is '1'"},
        {R"({"text": "\ud800"})", "surrogate"},
        {"{\"text\": \"\xff\"}", "not UTF-8"},
        {std::string("{\"text\": \"\0\"}", 12), "control character"},
        {"{\"x\": " + deep, "nested deeper than 64"},
        {std::string(70000, ' ') + "{", "line 3: "},
    };
    for (const auto& [line, says] : cases) {
        const TempFolder folder;
        folder.write("f", "{\"text\": \"a\"}\n\n" + line + "\n{\"text\": \"b\"}\n");
        const Outcome run = hf_crosscheck({"--tokenize", folder / "f"});
        CAPTURE(line.substr(0, 80));
        CAPTURE(run.err);
        CHECK(run.code == 1);
        CHECK(lines_of(run.out).size() == 1);
        CHECK(lines_of(run.err).size() == 1);
        CHECK(contains(run.err, folder / "f"));
        CHECK(contains(run.err, says));
    }
    std::string calls;
    while (calls.size() < 50000) calls += "{\"function\": ";
    const std::pair<std::string, const char*> chats[] = {
        {R"({"messages": {}})", "line 1: unusable JSON at byte 13"},
        {R"({"options": {}})", "line 1: has no \"messages\""},
        {R"({"messages": null})", "line 1: has no \"messages\""},
        {R"({"messages": [{"role": "user", "content": ["x"]}]})", "expected a string"},
        {R"({"messages": [], "options": {"enable_thinking": "yes"}})", "\"enable_thinking\" is"},
        {R"({"messages": [{"tool_calls": [)" + calls, "nested deeper"},
    };
    for (const auto& [line, says] : chats) {
        const Outcome run = hf_crosscheck({"--render-chat", "-"}, {.input = line});
        CAPTURE(run.err);
        CHECK(run.code == 1);
        CHECK(run.out.empty());
        CHECK(contains(run.err, says));
    }
}

TEST_CASE("hf-crosscheck: what cannot be asked of lines is refused before they are read") {
    const std::string demo = demo_model_path(), small = data_path("tokenizers/small_qwen35");
    const TempFolder empty;
    empty.write("no.json", "{}");
    empty.write("text", "hello");
    const struct {
        std::vector<std::string> arguments;
        int code;
        const char* says;
    } cases[] = {
        {{demo, "--tokenize", "-", "--render-chat", "-"}, 2, "beside another check"},
        {{demo, "--tokenize", "-", "--perplexity", "x"}, 2, "--tokenize"},
        {{demo, "--tokenize", "-", "--template", "qwen3"}, 2, "--template is for --render-chat"},
        {{demo, "--render-chat", "-", "--template", "qwen"}, 2, "qwen3.5-small"},
        {{demo, "--tokenize", "/no/such/lines"}, 1, "/no/such/lines"},
        {{demo, "--tokenize", "/"}, 1, "directory"},
        {{"/no/such/model", "--tokenize", "-"}, 1, "/no/such/model"},
        {{empty.path(), "--tokenize", "-"}, 1, "neither config.json nor tokenizer.json"},
        {{empty / "no.json", "--tokenize", "-"}, 1, "no.json: "},
        {{empty / "text", "--tokenize", "-"}, 1, "no model"},
        {{data_path("models/tiny_qwen35_a"), "--tokenize", "-"}, 4, "no tokenizer"},
        {{small + "/tokenizer.json", "--render-chat", "-"}, 4, "no chat template"},
    };
    for (const auto& c : cases) {
        const Outcome run = hf_crosscheck(c.arguments);
        CAPTURE(run.err);
        CHECK(run.code == c.code);
        CHECK(run.out.empty());
        CHECK(lines_of(run.err).size() == 1);
        CHECK(contains(run.err, c.says));
    }
}
