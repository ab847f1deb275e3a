// hf-run as people and scripts meet it: what it prints where, and how it exits.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/data.h"
#include "tests/tools/process.h"
#include "tests/tools/terminal_process.h"

using namespace hf::test;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

Outcome hf_run(std::vector<std::string> arguments, RunOptions options = {}) {
    arguments.insert(arguments.begin(), HF_RUN);
    return run_process(arguments, options);
}

/// On the demo model, greedy unless the arguments say otherwise.
Outcome ask(std::vector<std::string> arguments, RunOptions options = {}) {
    arguments.insert(arguments.begin(), {"-m", demo_model_path(), "--temp", "0"});
    return hf_run(arguments, options);
}

std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> list;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) list.push_back(line);
    return list;
}

std::vector<Json> objects(const std::string& text) {
    std::vector<Json> list;
    for (const std::string& line : lines(text)) list.push_back(Json::parse(line));
    return list;
}

const Json& golden() {
    static const Json json = Json::parse(read_file(demo_model_path() + "/golden.json"));
    return json;
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

/// A story that takes a while: hundreds of tokens.
const std::vector<std::string> kLongStory = {"--raw", "Once upon a time", "--ignore-eos",
                                             "--max-tokens", "1500"};

}  // namespace

TEST_CASE("hf-run: greedy ids of every golden prompt are the golden ones") {
    for (const Json& prompt : golden()["prompts"]) {
        std::string ids;
        for (int id : prompt["input_ids"]) ids += std::to_string(id) + ",";
        CAPTURE(ids);
        const Outcome run =
            ask({"--prompt-ids", ids, "--print-ids", "--kv", "f32", "--max-tokens", "48"});
        CHECK(run.code == 0);
        std::vector<int> want = prompt["greedy_ids"];
        if (!prompt["stop_index"].is_null()) want.resize(prompt["stop_index"].get<size_t>() + 1);
        std::string expected;
        for (int id : want) expected += std::to_string(id) + "\n";
        CHECK(run.out == expected);
    }
}

TEST_CASE(
    "hf-run: argument, pipe, '-' and file are the same prompt, and only the text is on stdout") {
    const std::string file =
        fs::temp_directory_path() / ("hf_run_prompt_" + std::to_string(getpid()));
    std::ofstream(file) << "What do cows eat?\n";
    const Outcome argument = ask({"What do cows eat?"});
    CHECK(argument.code == 0);
    CHECK(argument.out.size() > 4);
    CHECK(std::count(argument.out.begin(), argument.out.end(), '\n') == 1);
    CHECK(ask({}, {.input = "What do cows eat?\n"}).out == argument.out);
    CHECK(ask({"-"}, {.input = "What do cows eat?"}).out == argument.out);
    CHECK(ask({"--file", file}).out == argument.out);
    CHECK(hf_run({demo_model_path(), "What do cows eat?", "--temp", "0"}).out == argument.out);
    fs::remove(file);
}

TEST_CASE("hf-run: an empty value leaves a setting unset and takes nothing from its neighbour") {
    const Outcome plain = ask({"What do cows eat?", "--temp", "0"});
    const Outcome empty = ask({"--seed=", "--system=", "What do cows eat?", "--temp", "0"});
    CHECK(empty.code == 0);
    CHECK(empty.out == plain.out);
    const Outcome dump = ask({"--dump-logits=", "What do cows eat?"});
    CHECK(dump.code == 2);
    CHECK(contains(dump.err, "--dump-logits: the value is empty"));
}

TEST_CASE("hf-run: the summary says what was done, and -q leaves it out") {
    const Outcome run = ask({"What do cows eat?", "--threads", "1", "--isa", "scalar"});
    REQUIRE(lines(run.err).size() == 1);
    for (const char* part : {"hf-run: 13 tokens in", "tok/s", "MiB/token", "GB/s", "1 thread,",
                             ", f32/scalar;", "stop"})
        CHECK_MESSAGE(contains(run.err, part), run.err);
    CHECK_FALSE(contains(run.err, "seed"));  // nothing was drawn
    CHECK_FALSE(contains(run.err, "\x1b"));  // no colours outside a terminal
    const Outcome quiet = ask({"What do cows eat?", "-q"});
    CHECK(quiet.err.empty());
    CHECK(quiet.out == run.out);
}

TEST_CASE("hf-run: --json prints one valid object per line: start, tokens, summary") {
    const Outcome run = ask({"What do cows eat?", "--json", "--hash"});
    const auto list = objects(run.out);
    REQUIRE(list.size() >= 3);
    CHECK(list.front()["type"] == "start");
    CHECK(list.front()["device"]["simulated"] == false);
    REQUIRE(list.front()["device"]["products"].size() == 1);  // bf16 has no integer dots
    CHECK(list.front()["device"]["products"][0]["activations"] == "f32");
    CHECK(list.front()["prompt_tokens"] == 13);
    std::string text;
    for (size_t i = 1; i + 1 < list.size(); ++i) {
        CHECK(list[i]["type"] == "token");
        CHECK_FALSE(list[i].contains("id"));
        text += list[i]["text"].get<std::string>();
    }
    CHECK(text + "\n" == ask({"What do cows eat?"}).out);
    const Json& summary = list.back();
    CHECK(summary["type"] == "summary");
    CHECK(summary["finish"] == "stop");
    CHECK(summary["tokens_out"] == list.size() - 2);
    CHECK(summary["hash"].get<std::string>().size() == 16);
    CHECK(contains(ask({"What do cows eat?", "--hash"}).err,
                   "hash " + summary["hash"].get<std::string>()));
}

TEST_CASE("hf-run: --json stays UTF-8 when tokens are halves of characters") {
    // Byte tokens of this vocabulary end inside characters; a prompt of them invites more.
    for (int seed = 0; seed < 4; ++seed) {
        const Outcome run =
            hf_run({"-m", demo_model_path(), "--prompt-ids", "127,102,160,127", "--temp", "8",
                    "--set", "sampling.top_k=0", "--top-p", "1", "--json", "--ignore-eos",
                    "--max-tokens", "200", "--seed", std::to_string(seed)});
        CHECK(run.code == 0);
        CHECK(objects(run.out).size() == 202);  // parse() refuses what is not UTF-8
        CHECK(objects(run.out).front()["sampling"]["seed"] == seed);
    }
}

TEST_CASE(
    "hf-run: the same seed gives the same text for all threads, instruction levels and locales") {
    const auto tell = [&](const char* seed, const char* threads, const char* locale) {
        return hf_run({"-m", demo_model_path(), "Tell me a short story.", "--seed", seed,
                       "--threads", threads},
                      {.input = {}, .environment = {std::string("LC_ALL=") + locale}})
            .out;
    };
    const std::string first = tell("7", "1", "C");
    std::string scalar = hf_run({"-m", demo_model_path(), "Tell me a short story.", "--seed", "7",
                                 "--isa", "scalar", "--max-tokens", "24"})
                             .out;
    scalar.pop_back();  // the newline
    CHECK(scalar.size() > 50);
    CHECK(first.starts_with(scalar));
    CHECK(first == tell("7", "2", "de_DE.UTF-8"));
    CHECK(first != tell("8", "1", "C"));
}

TEST_CASE("hf-run: finish reasons are told apart") {
    const auto reason = [](std::vector<std::string> arguments) {
        arguments.push_back("--json");
        return objects(ask(arguments).out).back()["finish"].get<std::string>();
    };
    CHECK(reason({"What do cows eat?"}) == "stop");
    CHECK(reason({"What do cows eat?", "--max-tokens", "2"}) == "length");
    CHECK(reason({"What do cows eat?", "--ctx", "14"}) == "context");
    CHECK(reason({"What do cows eat?", "--ignore-eos", "--max-tokens", "30"}) == "length");
    CHECK(reason({"What do cows eat?", "--stop", "grass"}) == "stop_string");
}

TEST_CASE("hf-run: --stop ends the answer in front of a text, in every form of output") {
    const std::string whole = ask({"What do cows eat?"}).out;
    REQUIRE(contains(whole, "ass"));
    const Outcome text = ask({"What do cows eat?", "--stop", "never said", "--stop", "ass"});
    CHECK(text.out == whole.substr(0, whole.find("ass")) + "\n");
    CHECK(contains(text.err, "; stop_string"));
    std::string joined;
    for (const Json& object : objects(ask({"What do cows eat?", "--stop=ass", "--json"}).out))
        if (object["type"] == "token") joined += object["text"].get<std::string>();
    CHECK(joined + "\n" == text.out);
    CHECK(ask({"What do cows eat?", "--stop", "never said"}).out == whole);
}

TEST_CASE("hf-run: --template takes the place of the model's chat template") {
    const auto start = [](std::vector<std::string> more) {
        more.insert(more.begin(), {"What do cows eat?", "--json", "--max-tokens", "1"});
        const Outcome run = ask(more);
        REQUIRE_MESSAGE(run.code == 0, run.err);
        return objects(run.out).front();
    };
    const Json own = start({});
    CHECK(start({"--template", "chatml-trim"})["prompt_hash"] == own["prompt_hash"]);
    const Json other = start({"--template", "qwen2.5"});
    CHECK(other["chat_template"] == "qwen2.5");
    CHECK(other["prompt_hash"] != own["prompt_hash"]);
    const Outcome lacking = ask({"hi", "--template", "llama3"});
    CHECK(lacking.code == 1);
    CHECK(contains(lacking.err, "<|begin_of_text|>"));
}

TEST_CASE("hf-run: --dump-logits holds the logits that each token was chosen from") {
    const std::string path =
        fs::temp_directory_path() / ("hf_run_" + std::to_string(getpid()) + ".npy");
    const Json& prompt = golden()["prompts"][0];
    std::string ids;
    for (int id : prompt["input_ids"]) ids += std::to_string(id) + ",";
    REQUIRE(ask({"--prompt-ids", ids, "--kv", "f32", "--max-tokens", "5", "--dump-logits", path})
                .code == 0);
    const std::string bytes = read_file(path);
    fs::remove(path);
    REQUIRE(bytes.size() == 128 + 5 * 4096 * sizeof(float));
    CHECK(contains(bytes.substr(0, 128), "'shape': (5, 4096)"));
    std::vector<float> logits(5 * 4096);
    std::memcpy(logits.data(), bytes.data() + 128, bytes.size() - 128);
    for (const Json& top : prompt["last_logits_top10"])
        CHECK(logits[top[0].get<size_t>()] == doctest::Approx(top[1].get<double>()).epsilon(1e-4));
    for (size_t t = 0; t < 5; ++t) {
        const auto row = logits.begin() + ptrdiff_t(t * 4096);
        CHECK(std::max_element(row, row + 4096) - row == prompt["greedy_ids"][t]);
    }
}

TEST_CASE("hf-run: what is wrong is one line on stderr, with its exit code and nothing on stdout") {
    const std::string demo = demo_model_path(), tiny = data_path("models/tiny_qwen35_a");
    const struct {
        std::vector<std::string> arguments;
        int code;
        const char* says;
    } cases[] = {
        {{"-m", demo, "--no-such-flag", "hi"}, 2, "--no-such-flag"},
        {{"-m", demo, "--temp", "warm", "hi"}, 2, "sampling.temperature"},
        {{"-m", demo, "--set", "nonsense=1", "hi"}, 2, "nonsense"},
        {{"-m", demo, "--kv", "q4", "hi"}, 2, "f16, f32 or q8"},
        {{"-m", demo}, 2, "the prompt is empty"},  // standard input is an empty pipe
        {{"-m", demo, ""}, 2, "the prompt is empty"},
        {{"-m", demo, " \n"}, 2, "the prompt is empty"},
        {{"-m", demo, "tell", "me"}, 2, "'me' is one argument too many"},
        {{"-m", demo, "--file", "/x", "hi"}, 2, "--file"},
        {{"tell", "me"}, 2, "'tell' is neither a path"},
        {{"nosuch.gguf"}, 2, "'nosuch.gguf' is neither a path"},
        {{"./nosuch"}, 2, "'./nosuch' is neither a path"},
        {{"-m", demo, "--prompt-ids", "1,two"}, 2, "'two'"},
        {{"-m", demo, "--prompt-ids", "4096"}, 2, "4096"},
        {{"-m", demo, "--prompt-ids", ""}, 2, "--prompt-ids"},
        {{"-m", demo, "--dump-logits", "", "hi"}, 2, "--dump-logits"},
        {{"-m", demo, "--set", "run.seed", "hi"}, 2, "key=value"},
        {{"-m", demo, "--raw", "--system", "x", "hi"}, 2, "--system"},
        {{"-m", demo, "--template", "qwen", "hi"}, 2, "qwen3.5-small, qwen3.5, qwen3"},
        {{"-m", demo, "--template", "", "hi"}, 2, "--template"},
        {{"-m", demo, "--template", "qwen3", "--raw", "hi"}, 2, "--raw"},
        {{"-m", demo, "--template", "qwen3", "--prompt-ids", "1"}, 2, "--template"},
        {{"-m", demo, "--stop", "", "hi"}, 2, "--stop"},
        {{"-m", demo, "--stop", "\xff", "hi"}, 2, "not UTF-8"},
        {{"-m", tiny, "--prompt-ids", "1", "--stop", "x"}, 4, "--stop"},
        {{"-m", demo, "--prompt-ids", "1", "--raw"}, 2, "--raw"},
        {{"-m", demo, "--ctx", "4000", "hi"}, 2, "2048"},
        {{"-m", demo, "--set", "memory.max_seq=4000", "hi"}, 2, "memory.max_seq (--ctx) = 4000"},
        {{"-m", demo, "--set", "memory.kv_cahce=q8", "hi"},
         2,
         "the nearest is memory.kv_cache (--kv)"},
        {{"-m", demo, "--temp", "-1", "hi"}, 2, "a value of sampling.temperature, which"},
        {{"-m", "/no/such/model", "hi"}, 1, "/no/such/model"},
        {{"-m", demo, "--file", "/no/such/prompt"}, 1, "/no/such/prompt"},
        {{"-m", demo, "--file", "/"}, 1, "directory"},
        {{"-m", demo, "--dump-logits", "/no/such/folder/x.npy", "hi"}, 1, "/no/such/folder"},
        {{"-m", demo, "--dump-logits", "/dev/null", "hi"}, 1, "not a regular file"},
        {{"-m", demo, "--device", "hip", "hi"}, 3, "device.kind"},
        {{"-m", demo, "--ctx", "8", "What do cows eat?"}, 4, "memory.max_seq (--ctx) to 13\n"},
        {{"-m", tiny, "hi"}, 4, "--prompt-ids"},
    };
    for (const auto& c : cases) {
        const Outcome run = hf_run(c.arguments);
        CAPTURE(run.err);
        CHECK(run.code == c.code);
        CHECK(run.out.empty());
        CHECK(lines(run.err).size() == 1);
        CHECK(run.err.starts_with("hf-run: error: "));
        CHECK(contains(run.err, c.says));
    }
}

TEST_CASE("hf-run: a refusal is a sentence and a hint, exit code 4, and no word of a placement") {
    const std::vector<std::string> card = {"--device",     "host", "--vram-mb", "20",
                                           "--gpu-layers", "6",    "--exec",    "cpu"};
    const auto refused = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), card.begin(), card.end());
        return ask(arguments);
    };
    const struct {
        const char *setting, *sentence, *hint;
    } rows[] = {
        {"experimental.graph.forward=true", "refused: offload_exec=cpu with experimental.graph",
         "memory.offload_exec (--exec) = pcie"},
        {"replay.backend=redline", "refused: offload_exec=cpu with replay.backend=redline",
         "memory.offload_exec (--exec) = pcie"},
        {"speculation.mode=mtp", "refused: speculation.mode=mtp", "speculation.mode = off"},
        {"memory.host_headroom_mb=16777216", "refused: ", "memory.host_headroom_mb = "},
        {"device.vram_mb=5", "refused: ", "use a smaller model"},
        {"device.vram_mb=12", "refused: ", "memory.gpu_layer_budget (--gpu-layers) = "},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row.setting));
        const Outcome o = refused({"--set", row.setting, "Hello"});
        CHECK(o.code == 4);
        CHECK(o.out == "");
        const auto said = lines(o.err);
        REQUIRE(said.size() == 2);
        CHECK(said[0].starts_with("hf-run: error: " + std::string(row.sentence)));
        CHECK(said[1].starts_with("hf-run: hint: "));
        CHECK(contains(said[1], row.hint));
    }
    const Outcome o = refused({"--max-tokens", "1", "Hello"});
    CHECK(o.code == 0);
    CHECK(contains(o.err, "  partial offload: 6 resident / 6 offloaded, i_gpu_start=6\n"));
}

TEST_CASE("hf-run: how the split works inside is said to those who ask: by -v, or by the trace") {
    const std::vector<std::string> card = {demo_model_path(), "Hello",
                                           "--max-tokens",    "2",
                                           "--vram-mb",       "20",
                                           "--exec",          "cpu",
                                           "--set",           "memory.host_headroom_mb=0"};
    const auto said = [&](const std::string& flag, const RunOptions& options = {}) {
        std::vector<std::string> arguments = card;
        arguments.push_back(flag);
        return hf_run(arguments, options).err;
    };
    const std::string plain = said("--ignore-eos"), verbose = said("-v");
    for (const char* words : {"hipGraph", "fully covered", "capture: "}) {
        CHECK_FALSE(contains(plain, words));
        CHECK(contains(verbose, words));
    }
    CHECK(said("-q") == "");
    const RunOptions traced{.environment = {"HIPFIRE_CPU_EXEC_TRACE=1"}};
    const auto quiet = lines(said("-q", traced));
    CHECK(quiet.size() > 10);
    for (const std::string& line : quiet) CHECK(line.starts_with("hf-run: cpu exec: "));
}

TEST_CASE("hf-run: a model without a tokenizer takes ids and prints ids") {
    const Outcome run = hf_run({"-m", data_path("models/tiny_qwen35_a"), "--prompt-ids", "1,2,3",
                                "--temp", "0", "--max-tokens", "4"});
    CHECK(run.code == 0);
    CHECK(lines(run.out).size() == 4);
    for (const std::string& line : lines(run.out)) CHECK(line == std::to_string(std::stoi(line)));
}

TEST_CASE("hf-run: an interrupt ends the answer with its summary and exit code 130, 129 by HUP") {
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
        const std::string path =
            fs::temp_directory_path() / ("hf_run_cut_" + std::to_string(getpid()) + ".npy");
        auto arguments = kLongStory;
        arguments.insert(arguments.end(), {"--json", "--dump-logits", path});
        bool was_sent = false;
        const Outcome run = ask(arguments, {.on_output = [&](pid_t child, const std::string& out) {
                                    if (!was_sent && lines(out).size() > 5)
                                        was_sent = kill(child, signal) == 0;
                                    return true;
                                }});
        CHECK(run.code == (signal == SIGHUP ? 129 : 130));
        const auto list = objects(run.out);
        CHECK(list.back()["finish"] == "interrupted");
        CHECK(list.size() < 1000);
        CHECK(contains(run.err, "interrupted"));
        const size_t rows = list.size() - 2;
        CHECK(fs::file_size(path) == 128 + rows * 4096 * sizeof(float));
        fs::remove(path);
    }
}

TEST_CASE("hf-run: a terminal that hangs up ends it cleanly, unless nohup says to go on") {
    const std::string path =
        fs::temp_directory_path() / ("hf_run_hung_" + std::to_string(getpid()) + ".npy");
    std::vector<std::string> command = {HF_RUN, "-m", demo_model_path(), "--dump-logits", path};
    command.insert(command.end(), kLongStory.begin(), kLongStory.end());
    TerminalProcess process(command, {"TERM=xterm"});
    REQUIRE(process.wait_for("nce"));
    process.hang_up();
    CHECK(process.wait_for_exit() == 129);
    CHECK(fs::file_size(path) > 128);
    fs::remove(path);

    bool was_sent = false;
    const Outcome run =
        run_process({"/bin/sh", "-c",
                     std::string("trap '' HUP; exec ") + HF_RUN + " -m " + demo_model_path() +
                         " --raw 'Once upon a time' --ignore-eos --max-tokens 30 --print-ids"},
                    {.on_output = [&](pid_t child, const std::string&) {
                        if (!was_sent) was_sent = kill(child, SIGHUP) == 0;
                        return true;
                    }});
    CHECK(run.code == 0);
    CHECK(lines(run.out).size() == 30);
}

TEST_CASE("hf-run: an interrupt in a long prompt ends it with its summary and exit code 130") {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "the cat sat on the mat and looked at the big red dog ";
    bool was_sent = false;
    const Outcome run = ask({"--json", "--isa", "scalar", "--threads", "1"},
                            {.input = text, .on_output = [&](pid_t child, const std::string&) {
                                 if (!was_sent)
                                     was_sent = kill(child, SIGINT) == 0;  // at the start object
                                 return true;
                             }});
    CHECK(run.code == 130);
    const auto list = objects(run.out);
    REQUIRE(list.size() == 2);
    CHECK(list[1]["finish"] == "interrupted");
    CHECK(list[1]["prompt"]["tokens"] < list[1]["tokens_in"]);
    CHECK(contains(run.err, "interrupted"));
}

TEST_CASE("hf-run: an interrupt while the prompt is awaited ends it, whichever way it comes") {
    const std::string fifo =
        fs::temp_directory_path() / ("hf_run_fifo_" + std::to_string(getpid()));
    fs::remove(fifo);
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    // $1: a pipe that nobody opens to write, or one that stays open and empty
    const std::string wait =
        "until grep -q SigCgt:.*[2367abef]$ /proc/$pid/status; do sleep 0.01; done\n"
        "kill -INT $pid; wait $pid; code=$?; kill $writer 2>/dev/null; exit $code";
    for (const char* start : {"$RUN --file $FIFO & pid=$!; writer=\n",
                              "sleep 100 >$FIFO & writer=$!; $RUN <$FIFO & pid=$!\n",
                              "sleep 100 >$FIFO & writer=$!; $RUN --file $FIFO & pid=$!\n"}) {
        CAPTURE(start);
        const Outcome run = run_process(
            {"/bin/sh", "-c", start + wait},
            {.environment = {"PATH=/usr/bin:/bin", "FIFO=" + fifo,
                             std::string("RUN=") + HF_RUN + " -m " + demo_model_path()}});
        CHECK(run.code == 130);
        CHECK(run.out.empty());
        CHECK(run.err.empty());
    }
    fs::remove(fifo);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need all addresses
TEST_CASE("hf-run: threads that cannot be started are counted, and what to do is said") {
    const Outcome run = run_process({"/bin/sh", "-c",
                                     std::string("ulimit -v 3000000; exec ") + HF_RUN + " -m " +
                                         demo_model_path() + " --threads 1024 hi"});
    CHECK(run.code == 1);
    CHECK(run.out.empty());
    for (const char* part : {"hf-run: error: only ", " of 1024 threads", "--threads", "ulimit"})
        CHECK_MESSAGE(contains(run.err, part), run.err);
}
#endif

TEST_CASE("hf-run: a prompt that is the name of a file is met with the way out") {
    const std::string path = data_path("../../README.md");
    for (const Outcome& run : {hf_run({path}), hf_run({path, "--temp", "0"}, {.input = "hi"})}) {
        CHECK(run.code == 1);
        CHECK(
            contains(run.err, "if '" + path + "' is the prompt, write -m bundled in front of it"));
        CHECK(lines(run.err).size() == 1);
    }
    CHECK(hf_run({"-m", "bundled", path, "--max-tokens", "1"}).code == 0);
    for (const Outcome& run : {hf_run({"-m", path, "hi"}), hf_run({path, "hi"})}) {
        CHECK(run.code == 1);  // nobody could mean a prompt
        CHECK_FALSE(contains(run.err, "-m bundled"));
    }
}

TEST_CASE(
    "hf-run: with thinking on the answer begins as the prompt ended: <think> has its beginning") {
    const Outcome text = ask({"hi", "--thinking", "true", "--max-tokens", "2"});
    CHECK(text.out.starts_with("<think>\n"));
    const auto begins = [](std::vector<std::string> more) {
        more.insert(more.begin(), {"hi", "--json", "--max-tokens", "1"});
        return objects(ask(more).out).front()["answer_begins"].get<std::string>();
    };
    CHECK(begins({"--thinking", "true"}) == "<think>\n");
    CHECK(begins({"--thinking", "false"}) == "");
    CHECK(begins({}) == "");
    CHECK(begins({"--template", "qwen3.5"}) == "<think>\n");             // thinks by itself
    CHECK(begins({"--template", "qwen3", "--thinking", "true"}) == "");  // the model writes it
    CHECK_FALSE(contains(ask({"hi", "--thinking", "false"}).out, "think>"));
}

TEST_CASE("hf-run: a second interrupt ends it at once") {
    RunOptions options;
    bool was_sent = false;
    options.on_output = [&](pid_t child, const std::string&) {
        if (!was_sent) {
            kill(child, SIGSTOP);  // both arrive before it can end by itself
            kill(child, SIGINT);
            kill(child, SIGTERM);
            kill(child, SIGCONT);
            was_sent = true;
        }
        return true;
    };
    const Outcome run = ask(kLongStory, options);
    CHECK(run.code == 130);
    CHECK_FALSE(contains(run.err, "tokens in"));
}

TEST_CASE("hf-run: a reader that leaves ends it quietly, long before the answer's end") {
    for (const bool json : {false, true}) {
        auto arguments = kLongStory;
        if (json) arguments.push_back("--json");
        const Outcome run =
            ask(arguments, {.on_output = [](pid_t, const std::string&) { return false; }});
        CHECK(run.code == 0);
        CHECK(run.err.empty());
    }
}

TEST_CASE("hf-run: a message amid an answer begins a row where both go to the same place") {
    const std::vector<std::string> told = {"--set",
                                           "developer.cpu_exec_trace=true",
                                           "--vram-mb",
                                           "20",
                                           "--exec",
                                           "cpu",
                                           "What do cows eat?",
                                           "-q"};
    const Outcome apart = ask(told);
    CHECK(apart.out == ask({"What do cows eat?"}).out);
    CHECK(contains(apart.err, "hf-run: cpu exec: "));
    CHECK_FALSE(contains(apart.err, "\n\n"));
    std::string command = std::string(HF_RUN) + " -m " + demo_model_path() + " --temp 0 2>&1";
    for (const std::string& word : told) command += " '" + word + "'";
    const auto together = lines(run_process({"/bin/sh", "-c", command}).out);
    size_t messages = 0;
    std::string answer;
    for (const std::string& line : together) {
        CHECK((line.find("hf-run: ") == line.npos || line.starts_with("hf-run: ")));
        messages += line.starts_with("hf-run: ");
        if (!line.starts_with("hf-run: ")) answer += line;
    }
    CHECK(messages > 10);
    CHECK(answer + "\n" == apart.out);
}

TEST_CASE("hf-run: an output that cannot be written is an error") {
    const Outcome full = ask({"What do cows eat?"}, {.stdout_path = "/dev/full"});
    CHECK(full.code == 1);
    CHECK(contains(full.err, "No space left"));
    const Outcome closed = ask({"What do cows eat?"}, {.close_stdout = true});
    CHECK(closed.code == 1);
    CHECK(contains(closed.err, "standard output"));
}

TEST_CASE("hf-run: --help fits a screen, names every flag, and begins with an example that works") {
    const Outcome help = hf_run({"--help"});
    CHECK(help.code == 0);
    CHECK(help.err.empty());
    const auto text = lines(help.out);
    CHECK(text.size() <= 50);
    CHECK(text[0].starts_with("hf-run \"Tell me a short story about a dragon.\""));
    for (const char* flag : {"--file",
                             "--raw",
                             "--prompt-ids",
                             "--print-ids",
                             "--ignore-eos",
                             "--json",
                             "--hash",
                             "--dump-logits",
                             "--set",
                             "--config",
                             "--profile-config",
                             "--explain-config",
                             "--list",
                             "--quiet",
                             "--verbose",
                             "--version",
                             "--model",
                             "--system",
                             "--thinking",
                             "--seed",
                             "--temp",
                             "--ctx",
                             "--kv",
                             "--isa",
                             "--threads",
                             "--max-tokens"})
        CHECK_MESSAGE(contains(help.out, flag), flag);
    CHECK(hf_run({"--version"}).out.starts_with("hipfire "));
}

TEST_CASE(
    "hf-run: settings come from flags, variables and the file, and --explain-config says which") {
    const std::string folder =
        fs::temp_directory_path() / ("hf_run_config_" + std::to_string(getpid()));
    fs::create_directories(folder);
    std::ofstream(folder + "/hipfire.toml")
        << "[sampling]\ntemperature = 0\n[run]\nmax_tokens = 3\n"
        << "[models.demo]\npath = \"" << demo_model_path() << "\"\n";
    const RunOptions here{.input = {}, .environment = {"HIPFIRE_THREDS=4"}, .folder = folder};

    const Outcome named = hf_run({"demo", "What do cows eat?", "--print-ids"}, here);
    CHECK(named.code == 0);
    CHECK(lines(named.out).size() == 3);
    CHECK(contains(named.err, "warning: variable HIPFIRE_THREDS"));
    CHECK(contains(hf_run({"--list"}, here).out, "\ndemo "));

    // the last of two flags counts, --set among them
    const Outcome last = hf_run(
        {"-m", "demo", "hi", "--max-tokens", "9", "--set", "run.max_tokens=2", "--print-ids"},
        here);
    CHECK(lines(last.out).size() == 2);
    const Outcome first = hf_run(
        {"-m", "demo", "hi", "--set", "run.max_tokens=9", "--max-tokens", "1", "--print-ids"},
        here);
    CHECK(lines(first.out).size() == 1);

    const Outcome explained = hf_run({"--explain-config", "--kv", "q8"}, here);
    CHECK(explained.code == 0);
    CHECK(contains(explained.out, "flag --kv"));
    CHECK(contains(explained.out, "hipfire.toml:2"));
    fs::remove_all(folder);
}

TEST_CASE("hf-run: --profile accounts for the time of every op and changes no bit") {
    const std::vector<std::string> request = {
        "--raw", "Once upon a time", "--ignore-eos", "--max-tokens", "20", "--hash"};
    const Outcome plain = ask(request);
    std::vector<std::string> with = request;
    with.push_back("--profile");
    const Outcome profiled = ask(with);
    CHECK(profiled.code == 0);
    CHECK(profiled.out == plain.out);
    for (const char* part : {"passes of one token", "passes of several tokens", "gemv", "bf16",
                             "delta_rule", "attend", "outside the steps"})
        CHECK(contains(profiled.err, part));
    CHECK(!contains(plain.err, "passes of"));

    with.push_back("--json");
    const Json summary = objects(ask(with).out).back();
    uint64_t bytes = 0, passes = 0;
    double seconds = 0;
    for (const Json& row : summary["profile"]) {
        CHECK(row["thread_seconds"].get<double>() > 0);
        seconds += row["seconds"].get<double>();
        if (row["tokens"] != "one") continue;
        bytes += row["bytes"].get<uint64_t>();
        if (row["op"] == "embed") passes = row["calls"];
    }
    CHECK(passes == 19);
    CHECK(double(bytes) / 19 == summary["decode"]["bytes_per_token"].get<double>());
    const double all =
        summary["prompt"]["seconds"].get<double>() + summary["decode"]["seconds"].get<double>();
    CHECK(seconds > 0);
    CHECK(seconds <= all);
}
